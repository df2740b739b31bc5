"""How well does a model know a competition? Three questions, none of which proves anything by itself.

`deadlines` asks whether the competition ended before the model's training data does. `completion` asks whether the
model continues original texts better than texts that were perturbed. `likelihood` asks whether it finds original texts
more probable than texts that it cannot have seen. `performance` compares the answers with scores. `originals` says
what an original is; our twins and descriptions never are.
"""
