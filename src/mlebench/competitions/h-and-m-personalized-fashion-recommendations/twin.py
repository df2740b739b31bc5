import numpy as np

from mlebench.kit.twins import TwinFolder, hex_ids, image_bytes

FIRST_DAY = np.datetime64("2018-09-20")
DAYS = 734
PRICE_STEPS = 59_000  # prices are whole numbers of an unknown currency over this one
KINDS = ("Vest top", "Trousers", "Underwear Tights", "Sweater", "Blouse", "T-shirt", "Kids' set, 2-pack")
COLOURS = ("Black", "White", "Off White", "Beige", "Blue")


def twin(raw: TwinFolder) -> None:
    """Signal: customers mostly buy the same few articles again."""
    rng = raw.rng
    customers = np.array(sorted(hex_ids(rng, raw.count(200, least=60), 64)), dtype=object)
    products = rng.permutation(np.arange(108_775, 999_999))[: raw.count(40, least=20)]
    articles = np.array([f"{product:07d}{colour:03d}" for product in np.sort(products) for colour in (1, 2)], object)
    _write_transactions(raw, customers, articles)
    _write_articles(raw, articles)

    count = len(customers)
    raw.write_csv(
        "customers.csv",
        {
            "customer_id": customers,
            "FN": np.where(rng.rand(count) < 0.4, "1.0", ""),
            "Active": np.where(rng.rand(count) < 0.3, "1.0", ""),
            "club_member_status": rng.choice(["ACTIVE", "ACTIVE", "PRE-CREATE", "LEFT CLUB", ""], count),
            "fashion_news_frequency": rng.choice(["NONE", "Regularly", "Monthly", ""], count),
            "age": [f"{age}.0" if age < 80 else None for age in rng.randint(16, 82, count)],
            "postal_code": rng.choice(hex_ids(rng, max(2, count // 2), 64), count),
        },
    )
    guess = " ".join(articles[:12])
    raw.write_csv("sample_submission.csv", {"customer_id": customers, "prediction": [guess] * count})
    for number, article in enumerate(articles[::3]):  # not all have one
        pixels = np.full((8, 6, 3), 40 * (number % 5) + 20)
        raw.write(f"images/{article[:3]}/{article}.jpg", image_bytes(pixels, "JPEG"))


def _write_transactions(raw: TwinFolder, customers: np.ndarray, articles: np.ndarray) -> None:
    """Rows by day and customer; buying two of something gives two equal rows."""
    rng, count = raw.rng, raw.count(3000, least=600)
    day = np.where(rng.rand(count) < 0.06, DAYS - 1 - rng.randint(0, 9, count), rng.randint(0, DAYS, count))
    customer = (len(customers) * rng.rand(count) ** 2).astype(int)
    favourites = rng.randint(0, len(articles), (len(customers), 4))
    article = np.where(
        rng.rand(count) < 0.8,
        favourites[customer, rng.randint(0, 4, count)],
        (len(articles) * rng.rand(count) ** 2).astype(int),
    )
    cents = rng.randint(1, 60, len(articles)) * 50 - 1
    cents[0] = 1  # so cheap that it is printed with an exponent
    rows = np.lexsort([customer, day])
    rows = np.repeat(rows, np.where(rng.rand(count) < 0.05, 2, 1))
    raw.write_csv(
        "transactions_train.csv",
        {
            "t_dat": (FIRST_DAY + day[rows]).astype(str),
            "customer_id": customers[customer[rows]],
            "article_id": articles[article[rows]],
            "price": cents[article[rows]] / PRICE_STEPS,
            "sales_channel_id": rng.randint(1, 3, len(rows)),
        },
    )


def _write_articles(raw: TwinFolder, articles: np.ndarray) -> None:
    rng, count = raw.rng, len(articles)
    kind, graphic, colour, tone, master = (rng.randint(0, top, count) for top in (len(KINDS), 3, len(COLOURS), 3, 4))
    department, index, section, garment = (rng.randint(0, top, count) for top in (20, 4, 6, 5))
    raw.write_csv(
        "articles.csv",
        {
            "article_id": articles,
            "product_code": [article[:7] for article in articles],
            "prod_name": [
                f"{KINDS[number]} {article[4:7]} (1)" for number, article in zip(kind, articles, strict=True)
            ],
            "product_type_no": kind + 250,
            "product_type_name": np.array(KINDS)[kind],
            "product_group_name": np.array(["Garment Upper body", "Garment Lower body"])[kind % 2],
            "graphical_appearance_no": graphic + 1_010_016,
            "graphical_appearance_name": np.array(["Solid", "Stripe", "All over pattern"])[graphic],
            "colour_group_code": [f"{number:02d}" for number in colour + 9],
            "colour_group_name": np.array(COLOURS)[colour],
            "perceived_colour_value_id": tone + 1,
            "perceived_colour_value_name": np.array(["Dusty Light", "Light", "Dark"])[tone],
            "perceived_colour_master_id": master + 5,
            "perceived_colour_master_name": np.array(["Black", "White", "Beige", "Blue"])[master],
            "department_no": department + 1676,
            "department_name": [f"Jersey Basic {number}" for number in department],
            "index_code": np.array(list("ABCD"))[index],
            "index_name": np.array(["Ladieswear", "Lingeries/Tights", "Menswear", "Divided"])[index],
            "index_group_no": index + 1,
            "index_group_name": np.array(["Ladieswear", "Ladieswear", "Menswear", "Divided"])[index],
            "section_no": section + 16,
            "section_name": [f"Womens Everyday {number}" for number in section],
            "garment_group_no": garment + 1002,
            "garment_group_name": np.array(["Jersey Basic", "Knitwear", "Blouses", "Socks and Tights", "Shoes"])[
                garment
            ],
            "detail_desc": rng.choice(
                ["Jersey top with narrow shoulder straps.", 'A "must", in cotton, soft', ""], count
            ),
        },
    )
