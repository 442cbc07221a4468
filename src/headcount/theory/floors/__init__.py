"""Floors for every model of a class, and the upper bound beside them.

alphabet   hard heads on an alphabet: all orders enumerated
trained    what a trained model does on an alphabet, exactly: as it is, and with its heads made hard
bounded    Theorem 2(2) with constants, for bounded values and readout slope
nearest    the promise of `bounded` against small heads, all choices compared
one_head   one head that answers any retrieval, with a steep readout
counting   one head that answers any retrieval by counting cells, less steep for short sequences
phase      where fewer than D heads provably fail, and where one is enough
"""
