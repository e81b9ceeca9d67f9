// Text of a stream of tokens, piece by piece.

const REPLACEMENT = "\ufffd"; // ends a text whose last character is not whole yet
const MAX_PENDING = 4; // tokens: no character has more bytes in UTF-8
const MEMORY = 4; // tokens that spacing may depend on

/** Speller turns tokens into text, a whole character at a time. */
export class Speller {
    #detokenize;
    #before;
    #pending = [];

    /** detokenize(tokens, before) gives the text of tokens that follow the tokens before. */
    constructor(detokenize, prompt) {
        this.#detokenize = detokenize;
        this.#before = prompt.slice(-MEMORY);
    }

    /** add gives the text that the token completes, which may be none. */
    add(token) {
        this.#pending.push(token);
        const text = this.rest();
        if (text.endsWith(REPLACEMENT) && this.#pending.length < MAX_PENDING) return "";
        this.#before = [...this.#before, ...this.#pending].slice(-MEMORY);
        this.#pending = [];
        return text;
    }

    /** rest gives the text of what is not complete. */
    rest() { return this.#pending.length === 0 ? "" : this.#detokenize(this.#pending, this.#before); }
}

/** StopFilter passes text on up to a stop word, and holds back what may yet become one. */
export class StopFilter {
    #words;
    #held = "";
    stopped = false;

    constructor(words) { this.#words = words; }

    /** add gives the text that may go out; none is to be added once stopped is true. */
    add(text) {
        const all = this.#held + text;
        const cut = Math.min(...this.#words.map((word) => all.indexOf(word)).filter((at) => at >= 0));
        if (Number.isFinite(cut)) {
            this.stopped = true;
            this.#held = "";
            return all.slice(0, cut);
        }
        let keep = 0;
        for (const word of this.#words) {
            for (let n = Math.min(word.length - 1, all.length); n > keep; n--) {
                if (all.endsWith(word.slice(0, n))) keep = n;
            }
        }
        this.#held = all.slice(all.length - keep);
        return all.slice(0, all.length - keep);
    }

    /** rest gives what was held back, when no more text comes. */
    rest() { return this.#held; }
}
