"""The checker of annotations while tests run: beartype, with int allowed for float as type checkers do."""

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
