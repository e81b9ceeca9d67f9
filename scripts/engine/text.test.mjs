import assert from "node:assert/strict";
import test from "node:test";

import {Speller, StopFilter} from "./text.mjs";

// A token is a byte here, so that characters come in pieces.
const spell = (bytes) => {
    const speller = new Speller((tokens) => Buffer.from(tokens).toString("utf8"), []);
    const pieces = [...bytes].map((byte) => speller.add(byte));
    return [...pieces, speller.rest()];
};

test("a character comes whole, with its last byte", () => {
    const text = "a\u00e9\u20ac\u{1f600}z";
    const pieces = spell(Buffer.from(text));
    assert.deepEqual(pieces, ["a", "", "\u00e9", "", "", "\u20ac", "", "", "", "\u{1f600}", "z", ""]);
});

test("bytes that are no character are not held for ever", () => {
    const pieces = spell([0x80, 0x80, 0x80, 0x80, 0x61]);
    assert.deepEqual(pieces, ["", "", "", "\ufffd".repeat(4), "a", ""]);
});

test("an unfinished character is the rest", () => {
    assert.deepEqual(spell([0x61, 0xe2, 0x82]), ["a", "", "", "\ufffd"]);
});

test("spacing sees the tokens before", () => {
    const seen = [];
    const speller = new Speller((tokens, before) => { seen.push([...before]); return String(tokens); }, [1, 2, 3, 4, 5]);
    [6, 7].forEach((token) => speller.add(token));
    assert.deepEqual(seen, [[2, 3, 4, 5], [3, 4, 5, 6]]);
});

for (const [words, pieces, want, stopped] of [
    [["END"], ["a E", "N", "D tail"], "a ", true],
    [["END"], ["a E", "N", "X"], "a ENX", false],
    [["END"], ["a E", "N"], "a EN", false],
    [["aab"], ["aa", "ab"], "a", true],
    [["xyz", "b"], ["ax", "yb", "q"], "axy", true],
    [["\n\n"], ["l\n", "x\n", "\ny"], "l\nx", true],
    [["b", "ab"], ["a", "b"], "", true],
    [[], ["a", "b"], "ab", false],
]) {
    test(`stop ${JSON.stringify(words)} in ${JSON.stringify(pieces)}`, () => {
        const filter = new StopFilter(words);
        let got = "";
        for (const piece of pieces) {
            got += filter.add(piece);
            if (filter.stopped) break;
        }
        assert.equal(got + filter.rest(), want);
        assert.equal(filter.stopped, stopped);
    });
}
