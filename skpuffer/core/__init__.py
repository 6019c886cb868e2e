"""The mathematics: arrays in, arrays out.

May import the standard library, numpy and scipy (and POT, in `plans` alone).
Nothing here knows scikit-learn, pandas or a data frame.
"""
