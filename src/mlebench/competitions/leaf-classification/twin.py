import numpy as np

from mlebench.kit.twins import TwinFolder, image_bytes, rounded

NAMES = """
    Acer_Capillipes Acer_Circinatum Acer_Mono Acer_Opalus Acer_Palmatum Acer_Pictum Acer_Platanoids Acer_Rubrum
    Acer_Rufinerve Acer_Saccharinum Alnus_Cordata Alnus_Maximowiczii Alnus_Rubra Alnus_Sieboldiana Alnus_Viridis
    Arundinaria_Simonii Betula_Austrosinensis Betula_Pendula Callicarpa_Bodinieri Castanea_Sativa Celtis_Koraiensis
    Cercis_Siliquastrum Cornus_Chinensis Cornus_Controversa Cornus_Macrophylla Cotinus_Coggygria Crataegus_Monogyna
    Cytisus_Battandieri Eucalyptus_Glaucescens Eucalyptus_Neglecta Eucalyptus_Urnigera Fagus_Sylvatica Ginkgo_Biloba
    Ilex_Aquifolium Ilex_Cornuta Liquidambar_Styraciflua Liriodendron_Tulipifera Lithocarpus_Cleistocarpus
    Lithocarpus_Edulis Magnolia_Heptapeta Magnolia_Salicifolia Morus_Nigra Olea_Europaea Phildelphus
    Populus_Adenopoda Populus_Grandidentata Populus_Nigra Prunus_Avium Prunus_X_Shmittii Pterocarya_Stenoptera
    Quercus_Afares Quercus_Agrifolia Quercus_Alnifolia Quercus_Brantii Quercus_Canariensis Quercus_Castaneifolia
    Quercus_Cerris Quercus_Chrysolepis Quercus_Coccifera Quercus_Coccinea Quercus_Crassifolia Quercus_Crassipes
    Quercus_Dolicholepis Quercus_Ellipsoidalis Quercus_Greggii Quercus_Hartwissiana Quercus_Ilex Quercus_Imbricaria
    Quercus_Infectoria_sub Quercus_Kewensis Quercus_Nigra Quercus_Palustris Quercus_Phellos Quercus_Phillyraeoides
    Quercus_Pontica Quercus_Pubescens Quercus_Pyrenaica Quercus_Rhysophylla Quercus_Rubra Quercus_Semecarpifolia
    Quercus_Shumardii Quercus_Suber Quercus_Texana Quercus_Trojana Quercus_Variabilis Quercus_Vulcanica
    Quercus_x_Hispanica Quercus_x_Turneri Rhododendron_x_Russellianum Salix_Fragilis Salix_Intergra Sorbus_Aria
    Tilia_Oliveri Tilia_Platyphyllos Tilia_Tomentosa Ulmus_Bergmanniana Viburnum_Tinus Viburnum_x_Rhytidophylloides
    Zelkova_Serrata
"""
SPECIES = NAMES.split()
KINDS = ("margin", "shape", "texture")
FEATURES = 64  # of each kind
SIDES = (12, 16)


def twin(raw: TwinFolder) -> None:
    """Signal: every species has its own profile of features, from which its leaves differ by a tenth or so."""
    count, later = raw.count(200, least=len(SPECIES)), raw.count(40)
    profiles = raw.rng.rand(len(SPECIES), len(KINDS) * FEATURES) ** 3
    species = raw.rng.permutation(np.arange(count + later) % len(SPECIES))
    species[:count] = raw.rng.permutation(np.arange(count) % len(SPECIES))  # none is missing in train
    ids = raw.rng.permutation(count + later) + 1  # train and test share one range, in no order
    leaves = {"id": ids, "species": np.array(SPECIES)[species], **_features(raw.rng, profiles[species])}

    train = {name: values[:count] for name, values in leaves.items()}
    test = {name: values[count:] for name, values in leaves.items() if name != "species"}
    guess = {"id": test["id"], **{name: [1 / len(SPECIES)] * later for name in SPECIES}}
    for name, columns in (("train", train), ("test", test), ("sample_submission", guess)):
        raw.write_zipped_csv(f"{name}.csv", columns)
    raw.write_zip("images.zip", {f"images/{id}.jpg": _image(raw.rng) for id in np.sort(ids).tolist()})


def _features(rng: np.random.RandomState, profiles: np.ndarray) -> dict[str, list]:
    """Numbers as the original prints them: a zero is `0`, a very small number has an exponent."""
    values = rounded(profiles * rng.uniform(0.9, 1.1, profiles.shape) / 16)
    values[:, FEATURES : 2 * FEATURES] = rounded(values[:, FEATURES : 2 * FEATURES] / 16)  # shapes are finer
    names = [f"{kind}{number}" for kind in KINDS for number in range(1, FEATURES + 1)]
    return {name: [f"{value:.5g}" for value in column] for name, column in zip(names, values.T.tolist(), strict=True)}


def _image(rng: np.random.RandomState) -> bytes:
    """A white leaf with a ragged edge, on black; images differ in size."""
    height, width = rng.choice(SIDES, 2)
    y, x = np.indices((height, width))
    edge = rng.uniform(0.4, 1, (height, width))
    leaf = ((2 * y + 1) / height - 1) ** 2 + ((2 * x + 1) / width - 1) ** 2 < edge
    return image_bytes(255 * leaf, "JPEG")
