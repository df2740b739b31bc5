"""How runs end and how submissions are judged: the only lists of these words. docs/reference/records.md explains each.

The supervisor imports this module: standard library only.
"""

# How a run can end (`ended` in run.json).
FINISHED, AGENT_ERROR, TIMEOUT, OUT_OF_MEMORY, OVER_DISK, MODEL_UNAVAILABLE, INFRA_ERROR, CANCELLED = RUN_OUTCOMES = (
    "finished",
    "agent_error",
    "timeout",
    "out_of_memory",
    "over_disk",
    "model_unavailable",  # no call to the model ever succeeded, through no fault of the agent
    "infra_error",
    "cancelled",
)
# These say nothing about the agent: the run counts as missing, and repeating it is not a re-roll.
NOT_THE_AGENTS_FAULT = (MODEL_UNAVAILABLE, INFRA_ERROR, CANCELLED)

# What `--retry` may name. Repeating a run because of how it ended, rather than because of the machine, is a re-roll: it
# is counted, and standings show it.
RETRIES = {
    "infra": NOT_THE_AGENTS_FAULT,
    "failed": (AGENT_ERROR, OUT_OF_MEMORY, OVER_DISK),
    "timeout": (TIMEOUT,),
}

# How a submission was judged (`status` in a report).
GRADED, INVALID, MISSING = "graded", "invalid", "missing"
NOT_PREPARED, GRADER_ERROR, LIMIT = "not_prepared", "grader_error", "limit"
# These say nothing about the submission: somebody else must act.
UNGRADED_STATUSES = (NOT_PREPARED, GRADER_ERROR, LIMIT, MODEL_UNAVAILABLE, INFRA_ERROR)
STATUSES = (GRADED, INVALID, MISSING, *UNGRADED_STATUSES)
