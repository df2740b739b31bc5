"""Errors say who must act.

Exception
├── InvalidSubmissionError     the agent: its submission cannot be graded
├── ValueError
│   └── PrerequisiteError      the person at the keyboard: one line says what to do, no traceback is shown
│       ├── RequestError           a request contradicts itself or leaves out what it needs
│       ├── UnknownCompetitionError
│       ├── UnknownSplitError
│       ├── ConfigError            a competition's config.yaml is broken; names file and key
│       ├── MissingPackageError    a competition's code imports a package that is not installed; also an ImportError
│       ├── UnreadableSubmissionError  the person who grades may not read a submission
│       └── NotPreparedError       data is missing or incomplete; commands add how to prepare it
├── SandboxError               infrastructure: the run may be retried
└── StorageError               the person at the keyboard: a disk is full or failing. Nothing is lost, and the step can
                               be repeated once the disk works again

Anything else that escapes is our bug and keeps its traceback.
"""


class InvalidSubmissionError(Exception):
    """A submission breaks its competition's format; the message tells the agent's author what to fix."""


class PrerequisiteError(ValueError):
    """Something outside this program must be fixed before the command can work."""


class RequestError(PrerequisiteError):
    """A request contradicts itself, names what does not exist or leaves out what it needs."""


class UnknownCompetitionError(PrerequisiteError):
    """No competition has this id."""


class UnknownSplitError(PrerequisiteError):
    """No split has this name."""


class ConfigError(PrerequisiteError):
    """The config.yaml of a competition or an agent is broken."""


class MissingPackageError(PrerequisiteError, ModuleNotFoundError):
    """A competition's code imports a package that is not installed."""


class UnreadableSubmissionError(PrerequisiteError):
    """A submission cannot be read for a reason that is not its author's concern: permissions, a failing disk."""


class NotPreparedError(PrerequisiteError):
    """A competition's data has not been prepared in this data directory."""


class SandboxError(Exception):
    """The place where an agent runs failed; the agent is not to blame."""


class StorageError(Exception):
    """A disk of ours is full or failing; what was to be stored is still where it was."""
