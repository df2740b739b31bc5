"""One list of forms, two policies: a bundle is refused for what is certain, and a judge sees nothing that is likely."""

import pytest

from mlebench.bundles.secret_scan import SecretScanner
from mlebench.core.secrets import CERTAIN_NAMES, FORMS, LIKELY_NAMES, hiding
from mlebench.integrity.scrub import scrubbed

HEX = "0123456789abcdef0123456789abcdef"
GENUINE = {
    "an Anthropic key": ["sk-ant-api03-abcdefghijklmnopqrstuv"],
    "an OpenAI key": ["sk-proj-abcdefghijklmnop1234567890", "sk-abcdefghijklmnopqrstuvwxyz0123"],
    "an AWS key": ["AKIAABCDEFGHIJKLMNOP"],
    "a GitHub token": ["ghp_abcdefghijklmnopqrstuvwxyz0123456789", "github_pat_" + "a1" * 20],
    "a GitLab token": ["glpat-abcdefghijklmnopqrst"],
    "a Hugging Face token": ["hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"],
    "a Slack token": ["xoxb-123456789012-abcdef", "xoxe-1-abcdefghijk"],
    "a Google key": ["AIza" + "a1_-B" * 7],
    "a JSON web token": ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijk"],
    "a private key": [
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nabc\n-----END PGP PRIVATE KEY BLOCK-----",
        "-----BEGIN RSA PRIVATE KEY-----\nabc",
    ],
    "a Kaggle key": [
        f"KAGGLE_KEY={HEX}",
        f'{{"key": "{HEX}"}}',
        f'"{{\\"key\\": \\"{HEX}\\"}}"',
        "KGAT_abcdefghijklmnop",
    ],
}


@pytest.mark.parametrize("what", [form.what for form in FORMS])
def test_what_stops_a_bundle_never_reaches_a_judge(what: str) -> None:
    for key in GENUINE[what]:
        assert [found.what for found in SecretScanner({}).find(f"x {key} y".encode())] == [what]
        text, count = scrubbed(f"x {key} y", {})
        assert count == 1
        assert not any(part in text for part in (key, HEX))


@pytest.mark.parametrize("text", ["sk-learn-contrib-package", "hf_abcdefghijklmnopqrst", "AIza" + "a" * 31])
def test_likely_secrets_are_hidden_from_a_judge_and_stop_no_bundle(text: str) -> None:
    assert SecretScanner({}).find(text.encode()) == []
    assert scrubbed(text, {}) == ("[secret]", 1)


@pytest.mark.parametrize(
    "spelled",
    [
        r"s\u0065same/Open \"now\"",
        r"sesame\/Open \"now\"",
        r"sesame\\/Open \\\"now\\\"",
        r"\u0073\u0065\u0073\u0061\u006D\u0065\u002F\u004f\u0070\u0065\u006e\u0020\u0022now\u0022",
        r"sesame/Open \\u0022now\\u0022",
    ],
)
def test_secrets_of_this_host_are_found_however_json_spells_them(spelled: str) -> None:
    environment = {"MY_TOKEN": 'sesame/Open "now"'}
    assert [found.what for found in SecretScanner(environment).find(f"x {spelled} y".encode())] == [
        "the value of $MY_TOKEN"
    ]
    assert scrubbed(f"x {spelled} y", environment) == ("x [secret] y", 1)


def test_a_text_full_of_backslashes_is_searched_quickly() -> None:
    """A quadratic search would take hours."""
    text = "\\" * 5_000_000
    assert hiding("sk-abcdefgh/ijkl")(text) == text


@pytest.mark.parametrize("text", [HEX, f"md5 {HEX}", "task-force", "a key, a token"])
def test_everyday_words_are_left_alone(text: str) -> None:
    assert SecretScanner({}).find(text.encode()) == []
    assert scrubbed(text, {}) == (text, 0)


def test_variables_whose_values_are_certain_are_likely_too() -> None:
    for name in ("MY_KEY", "x_token", "A_SECRET", "PGPASSWORD", "PASSWORD_FILE"):
        assert CERTAIN_NAMES.fullmatch(name)
        assert LIKELY_NAMES.fullmatch(name)
    for name in ("SSH_KEYS", "TOKENS", "DB_PASSWD", "AWS_CREDENTIALS"):
        assert not CERTAIN_NAMES.fullmatch(name)
        assert LIKELY_NAMES.fullmatch(name)
    assert not LIKELY_NAMES.fullmatch("HOME")
