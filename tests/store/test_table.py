"""Three ways to look at a results folder: by its writer, beside its writer, and after its writer is gone."""

import contextlib

from headcount.store import Store

from .laws import StoreLaws, a_record, new_store, unchecked_randomness

pytestmark = unchecked_randomness


class TestSeenByItsWriter(StoreLaws):
    def looking(self, writer):
        return contextlib.nullcontext(writer)


class TestSeenBesideItsWriter(StoreLaws):
    def looking(self, writer):
        return Store.open_for_reading(writer.root)


class TestSeenAfterItsWriter(StoreLaws):
    def looking(self, writer):
        writer.close()
        return Store.open_for_reading(writer.root)


class TestSeenByTheNextWriter(StoreLaws):
    def looking(self, writer):
        writer.close()
        return Store.open_for_writing(writer.root)


def test_a_reader_sees_what_comes_after_it_opened():
    with new_store() as writer, Store.open_for_reading(writer.root) as reader:
        assert reader.records() == []
        writer.commit([a_record()])
        assert reader.records() == [a_record()]


def test_closing_twice_is_harmless():
    with new_store() as store:
        store.close()
