"""How well does a model know a competition? Three questions, none of which proves anything by itself.

`deadlines` asks whether the competition ended before the model's training data does. `completion` asks whether the
model continues original texts better than texts that were perturbed. `likelihood` asks whether it finds original texts
more probable than such that it cannot have seen. `performance` holds the answers against scores. `originals` says
what an original is; a twin or a description of ours never is one.
"""
