"""Other libraries' ways to do parts of the same, as peers for `one_column.py`.

OpenDP and POT are needed to run these functions, not to import them.
"""


def opendp_noise(law, size, scale=1.0, k=None):
    """Return OpenDP's mechanism for vectors of floats: exact, as ours is.

    `law` is "laplace" or "gaussian", `size` the length of the vectors. The noise is on
    multiples of 2^k, by default of the smallest float, which takes OpenDP more time.
    """
    import opendp.prelude as dp

    dp.enable_features("contrib")
    make, metric = {
        "laplace": (dp.m.make_laplace, dp.l1_distance),
        "gaussian": (dp.m.make_gaussian, dp.l2_distance),
    }[law]
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=size)
    return make(domain, metric(T=float), scale=scale, k=k)


def pot_plan(first, second):
    """Return POT's monotone plan of two columns with equal masses, as a sparse array."""
    import ot

    return ot.emd_1d(first, second, dense=False)
