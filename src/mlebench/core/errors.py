"""Each exception class names who has to fix the problem.

Exception
├── InvalidSubmissionError     the agent: its submission cannot be graded
├── ValueError
│   └── PrerequisiteError      the person at the keyboard: one line says what to do, no traceback is shown
│       ├── RequestError           a request contradicts itself or leaves out what it needs
│       ├── UnknownCompetitionError
│       ├── UnknownSplitError
│       ├── ConfigError            a competition's config.yaml is broken; names file and key
│       ├── CompetitionError       the author of a competition: its code is wrong; names file and line
│       │   └── MissingCodeError       a competition lacks a file or a function; also an ImportError
│       ├── RawDataError           raw data does not fit the code that reads it: get it again or, if it is beyond doubt,
│       │                          the author must act
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


class CompetitionError(PrerequisiteError):
    """A competition's code, or what it says about itself, is wrong; its author must act."""

    def __init__(self, fault: str, location: str | None = None):
        super().__init__(fault, location)
        self.fault = fault
        self.location = location  # file and line, once known

    def __str__(self) -> str:
        return f"{self.location}: {self.fault}" if self.location else self.fault


class MissingCodeError(CompetitionError, ImportError):
    """A competition lacks a file or a function."""


class RawDataError(PrerequisiteError):
    """Raw data cannot be read, or lacks what a competition's code asks for."""

    def __init__(self, fault: str, advice: str = "get the complete data again"):
        super().__init__(fault, advice)
        self.fault = fault
        self.advice = advice  # if it is the data that is wrong
        self.location: str | None = None  # file and line of the code that asks, once known

    def __str__(self) -> str:
        return f"{self.fault}; {self.advice}"


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
