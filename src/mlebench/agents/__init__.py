"""Agents: programs that are given a competition and leave a submission. Each built-in agent has a folder."""

from mlebench.agents.npm import install_fault, npm_dir
from mlebench.agents.spec import Agent, built_in, load_agent
from mlebench.agents.venvs import base_python, venv_fault, venv_of

__all__ = [
    "Agent",
    "base_python",
    "built_in",
    "install_fault",
    "load_agent",
    "npm_dir",
    "venv_fault",
    "venv_of",
]
