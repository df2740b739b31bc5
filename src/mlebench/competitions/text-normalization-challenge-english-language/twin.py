from mlebench.kit.twins import TwinFolder, write_token_twin

NUMBERS = """zero one two three four five six seven eight nine
    ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"""
TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
MONTHS = "January February March April May June July August September October November December"
# Words that stay as they are; among them text that CSV readers take for a gap, and some that needs quoting.
WORDS = """the of and in to was is for as by with from on at which his their band river church album league species
    Brillantaisia zoë Müller naïve São 東京 Пётр O'Brien co-founder d'Ivoire null None nan NaN n/a"""
PHRASES = ['so-called "Jo"', "a, b", "  "]
PUNCTUATION = [",", ".", '"', "'", "(", ")", ";", ":", "—", "-"]


def twin(raw: TwinFolder) -> None:
    """Signal: most tokens are said as written; numbers, dates and abbreviations each follow a fixed rule."""
    write_token_twin(raw, "en", _kinds())


def _kinds() -> list[tuple[float, list[tuple[str, str, str]]]]:
    """How often a kind of token occurs, and its tokens: class, before, after."""
    years = range(1901, 2000)
    days = [(day, month) for day in (1, 2, 3, 15, 28) for month in MONTHS.split()]
    return [
        (70, [("PLAIN", word, word) for word in [*WORDS.split(), *PHRASES]]),
        (18, [("PUNCT", sign, sign) for sign in PUNCTUATION]),
        (3, [("CARDINAL", str(number), _spoken(number)) for number in range(1, 1000, 7)]),
        (2, [("DATE", str(year), f"{_spoken(year // 100)} {_year_end(year % 100)}") for year in years]),
        (2, [("DATE", f"{day} {month}", f"the {_ordinal(day)} of {month.lower()}") for day, month in days]),
        (2, [("LETTERS", name, " ".join(name.lower())) for name in ("NA", "BBC", "USA", "J.R.", "NULL")]),
        (1, [("DECIMAL", f"{n / 10}", f"{_spoken(n // 10)} point {_decimal(n % 10)}") for n in range(1, 100)]),
        (1, [("MEASURE", f"{number}km", f"{_spoken(number)} kilometers") for number in range(2, 60)]),
        (1, [("MONEY", f"${number}", f"{_spoken(number)} dollars") for number in range(2, 60)]),
        (1, [("DIGIT", f"00{number}", f"o o {_spoken(number)}") for number in range(1, 10)]),
        (1, [("VERBATIM", sign, said) for sign, said in (("&", "and"), ("α", "alpha"), ("#", "hash"), ("", ""))]),
    ]


def _spoken(number: int) -> str:
    small = NUMBERS.split()
    if number < len(small):
        return small[number]
    if number < 100:
        return TENS.split()[number // 10 - 2] + (f" {small[number % 10]}" if number % 10 else "")
    return f"{small[number // 100]} hundred" + (f" {_spoken(number % 100)}" if number % 100 else "")


def _year_end(number: int) -> str:
    return _spoken(number) if number > 9 else f"o {_spoken(number)}"


def _decimal(digit: int) -> str:
    return _spoken(digit) if digit else "o"


def _ordinal(day: int) -> str:
    return {1: "first", 2: "second", 3: "third", 15: "fifteenth", 28: "twenty eighth"}[day]
