from mlebench.kit.twins import TwinFolder, write_token_twin

UNITS = """ноль один два три четыре пять шесть семь восемь девять
    десять одиннадцать двенадцать тринадцать четырнадцать пятнадцать шестнадцать семнадцать восемнадцать девятнадцать"""
TENS = "двадцать тридцать сорок пятьдесят шестьдесят семьдесят восемьдесят девяносто"
HUNDREDS = "сто двести триста четыреста пятьсот шестьсот семьсот восемьсот девятьсот"
# Ordinals from the first to the ninth, without the case ending; the third has a different stem.
ORDINALS = "перв втор трет четверт пят шест седьм восьм девят"
MONTHS = "января февраля марта апреля мая июня июля августа сентября октября ноября декабря"
# Words that stay as they are; among them text that CSV readers take for a gap, and some that needs quoting.
WORDS = """в и на с по из к от для что был была как его её река город население команда альбом область вид
    Москва Санкт-Петербург ёлка Пётр кого-либо замо́к Ґалаґан Łódź 東京 null None nan NaN n/a"""
PHRASES = ['так называемый "Джо"', "а, б", "  "]
PUNCTUATION = [",", ".", '"', "«", "»", "(", ")", ";", ":", "—", "-"]
LATIN = {"a": "а", "b": "б", "d": "д", "e": "э", "i": "и", "k": "к", "l": "л", "m": "м", "n": "н", "o": "о", "r": "р"}


def twin(raw: TwinFolder) -> None:
    """Signal: most tokens are said as written; numbers, dates and Latin words each follow a fixed rule."""
    write_token_twin(raw, "ru", _kinds())


def _kinds() -> list[tuple[float, list[tuple[str, str, str]]]]:
    """How often a kind of token occurs, and its tokens: class, before, after."""
    years = [year for year in range(1921, 2000) if year % 10]
    days = [(day, month) for day in range(1, 10) for month in MONTHS.split()]
    signs = (("№", "номер"), ("&", "и"), ("α", "альфа"), ("%", "процент"), ("", ""))
    return [
        (70, [("PLAIN", word, word) for word in [*WORDS.split(), *PHRASES]]),
        (18, [("PUNCT", sign, sign) for sign in PUNCTUATION]),
        (2, [("PLAIN", word, _in_cyrillic(word)) for word in ("Blink", "Kindle", "Oberon", "Rainer", "model")]),
        (3, [("CARDINAL", str(number), _spoken(number)) for number in range(1, 1000, 7)]),
        (3, [("DATE", f"{year} году", f"тысяча девятьсот {_ordinal(year % 100, 'ом')} году") for year in years]),
        (2, [("DATE", f"{day} {month}", f"{_ordinal(day, 'ого')} {month}") for day, month in days]),
        (1, [("ORDINAL", f"{number}-й", _ordinal(number, "ый")) for number in (1, 4, 5, 9, 21, 55)]),
        (2, [("LETTERS", name, " ".join(name.lower())) for name in ("NA", "США", "СССР", "АН", "NULL")]),
        (1, [("DECIMAL", f"{n},5", f"{_spoken(n)} целых и пять десятых") for n in range(5, 20)]),
        (1, [("MEASURE", f"{number} км", f"{_spoken(number)} километров") for number in range(5, 21)]),
        (1, [("MONEY", f"${number}", f"{_spoken(number)} долларов сэ ш а") for number in range(5, 21)]),
        (1, [("DIGIT", f"00{number}", f"ноль ноль {_spoken(number)}") for number in range(1, 10)]),
        (1, [("VERBATIM", sign, said) for sign, said in signs]),
    ]


def _spoken(number: int) -> str:
    small = UNITS.split()
    if number < len(small):
        return small[number]
    if number < 100:
        head, rest = TENS.split()[number // 10 - 2], number % 10
    else:
        head, rest = HUNDREDS.split()[number // 100 - 1], number % 100
    return f"{head} {_spoken(rest)}" if rest else head


def _ordinal(number: int, ending: str) -> str:
    """Only the last word is an ordinal; the tens before it are cardinals."""
    tens = f"{TENS.split()[number // 10 - 2]} " if number > 9 else ""
    soft = {"ом": "ьем", "ого": "ьего"}.get(ending, ending) if number % 10 == 3 else ending
    return tens + ORDINALS.split()[number % 10 - 1] + soft


def _in_cyrillic(word: str) -> str:
    """Latin letters are said one by one; a mark shows that they are transcribed."""
    return " ".join(f"{LATIN[letter]}_trans" for letter in word.lower())
