// A small OpenAI-compatible server on a real llama.cpp engine (node-llama-cpp,
// CPU only). Assay's tests run suites against it: its weights may be tiny, but
// prefill, decode, the KV cache, batching and queueing are the real thing.
//
//   node server.mjs --home DIR --model FILE.gguf [--port 0] [--sequences 4] [--context 512]
//                   [--chat-template-file FILE]
//
// DIR holds node_modules (see install.sh). The first line on stdout is
// "listening 127.0.0.1:PORT"; the engine's own messages go to stderr. The
// server ends on SIGTERM or SIGINT, and when its standard input is a pipe that
// closes, so that it cannot outlive a test that died.
//
// It answers as llama.cpp's own server does, wherever both have a feature:
//   - GET /health, /v1/models, /metrics (names with the prefix llamacpp:)
//   - GET /props, of which the build, the slots with their context and defaults, the
//     path of the model and the chat template; POST /tokenize
//   - POST /v1/completions, /v1/chat/completions, streamed or not
//   - usage, always in a whole answer; in a stream on a last chunk of its own
//     when stream_options.include_usage asks for it
//   - timings of the request on the last JSON document of the answer: prompt_ms
//     ends and predicted_ms starts at the first token. The field queue_ms, from
//     the request's head to the start on a free sequence, is an addition.
//   - usage counts the end-of-text token when the model ends by itself
//   - a chat is written by the template of --chat-template-file, else by that of the
//     weights; weights without one (those made for tests) get the messages joined by line
//     breaks
//   - logprobs and top_logprobs, at most 20. They are probabilities after
//     temperature, top_p and top_k, as llama.cpp gives with
//     post_sampling_probs; with temperature 0, those before sampling.
//   - response_format json_schema, held by a grammar
// One sequence serves one request; requests beyond that wait in order of arrival.
// A sequence keeps the tokens of its last request. A prompt goes to the free
// sequence that shares the longest beginning with it, and only the rest is
// computed (cache_prompt: false in the body computes all of it). Both usage
// (prompt_tokens_details.cached_tokens) and timings (cache_n) say how much was
// there; prompt_tokens_total counts what was computed, as llama.cpp's does, and
// prompt_tokens_cached_total, an addition, what was not.
// The engine runs on one thread: ggml's threads spin at barriers, and two of
// them on a busy machine with two cores are many times slower than one.

import {randomInt, randomUUID} from "node:crypto";
import {fstatSync, readFileSync} from "node:fs";
import http from "node:http";
import path from "node:path";
import {pathToFileURL} from "node:url";
import {parseArgs} from "node:util";

import {Speller, StopFilter} from "./text.mjs";

const THREADS = 1;
const MAX_BODY = 4 << 20; // bytes of one request
const MAX_TOP = 20; // alternatives of one token
const BATCH = 512; // tokens of one engine step
const DEFAULTS = {temperature: 0.8, top_p: 0.95, top_k: 40}; // of a request that names none: llama.cpp's own

const {values: flags} = parseArgs({options: {
    home: {type: "string"},
    model: {type: "string"},
    port: {type: "string", default: "0"},
    sequences: {type: "string", default: "4"},
    context: {type: "string", default: "512"},
    "chat-template-file": {type: "string"},
}});
const wholeNumber = (name, min, max) => {
    const n = Number(flags[name]);
    if (!Number.isInteger(n) || n < min || n > max) {
        console.error(`server: --${name} ${flags[name]}: want a whole number from ${min} to ${max}`);
        process.exit(2);
    }
    return n;
};
if (!flags.home || !flags.model) {
    console.error("usage: node server.mjs --home DIR --model FILE.gguf [--port N] [--sequences N] [--context N] [--chat-template-file FILE]");
    process.exit(2);
}
const port = wholeNumber("port", 0, 65535);
const sequences = wholeNumber("sequences", 1, 64);

// The packages live outside the repository, where Node would not look for them.
const library = (name) => import(pathToFileURL(path.join(path.resolve(flags.home), "node_modules", name)));
const {getLlama, LlamaGrammarEvaluationState, TokenBias} = await library("node-llama-cpp/dist/index.js");

const llama = await getLlama({
    gpu: false, build: "never", maxThreads: THREADS, logLevel: "error",
    logger: (level, message) => process.stderr.write(`llama.cpp: ${level}: ${message}\n`),
});
const {model, context, contextSize} = await load(path.resolve(flags.model)).catch((error) => {
    console.error(`server: loading ${flags.model}: ${error.message}`);
    process.exit(1);
});

async function load(modelPath) {
    const model = await llama.loadModel({modelPath});
    const contextSize = Math.min(wholeNumber("context", 8, 1 << 20), model.trainContextSize);
    const context = await model.createContext({contextSize, sequences, threads: THREADS, batchSize: BATCH});
    return {model, context, contextSize};
}

const templateFile = flags["chat-template-file"];
const templateText = templateFile === undefined ? model.fileInfo.metadata?.tokenizer?.chat_template : readFileSync(templateFile, "utf8");
const chatTemplate = await readTemplate(templateText);

async function readTemplate(text) {
    if (typeof text !== "string") return null;
    const {Template} = await library("@huggingface/jinja/dist/index.js");
    return new Template(text);
}

const modelName = path.basename(flags.model).replace(/\.gguf$/, "");
const fingerprint = `llama.cpp-${llama.llamaCppRelease?.release ?? "unknown"}`;
const started = Math.floor(Date.now() / 1000);

// totals is what /metrics tells; a request counts when it has ended.
const totals = {promptTokens: 0, cachedTokens: 0, promptMs: 0, predictedTokens: 0, predictedMs: 0, maxTokens: 0, aborted: 0, abortedCached: 0, abortMs: 0};

/**
 * Slots hands the engine's sequences to requests, first come, first served, and
 * to each the free sequence that holds most of its prompt; of equals, the one
 * that has been idle longest.
 */
class Slots {
    #free; // the longest idle first
    #waiting = [];
    #size;

    constructor(all) {
        this.#free = all;
        this.#size = all.length;
    }

    get busy() { return this.#size - this.#free.length; }
    get waiting() { return this.#waiting.length; }

    /** take resolves to a sequence, or to null when gone fires while waiting. */
    take(prompt, gone) {
        if (gone.aborted) return Promise.resolve(null);
        if (this.#free.length > 0) return Promise.resolve(this.#best(prompt));
        return new Promise((resolve) => {
            const turn = (sequence) => {
                gone.removeEventListener("abort", leave);
                resolve(sequence);
            };
            const leave = () => {
                this.#waiting.splice(this.#waiting.indexOf(turn), 1);
                resolve(null);
            };
            gone.addEventListener("abort", leave, {once: true});
            this.#waiting.push(turn);
        });
    }

    give(sequence) {
        const turn = this.#waiting.shift();
        if (turn) turn(sequence);
        else this.#free.push(sequence);
    }

    #best(prompt) {
        let best = 0, most = -1;
        this.#free.forEach((sequence, i) => {
            const held = sharedTokens(sequence.contextTokens, prompt);
            if (held > most) [best, most] = [i, held];
        });
        return this.#free.splice(best, 1)[0];
    }
}

function sharedTokens(a, b) {
    let n = 0;
    while (n < a.length && n < b.length && a[n] === b[n]) n++;
    return n;
}
const slots = new Slots(Array.from({length: sequences}, () => context.getSequence()));

/** Refusal is an error that the client caused, in OpenAI's shape. */
class Refusal extends Error {
    constructor(status, message, code = null, param = null) {
        super(message);
        this.status = status;
        this.body = {error: {message, type: "invalid_request_error", param, code}};
    }
}

async function readJSON(request) {
    const chunks = [];
    let size = 0;
    for await (const chunk of request) {
        size += chunk.length;
        if (size > MAX_BODY) throw new Refusal(413, `the request is longer than ${MAX_BODY} bytes`);
        chunks.push(chunk);
    }
    let value;
    try {
        value = JSON.parse(Buffer.concat(chunks).toString("utf8"));
    } catch (error) {
        throw new Refusal(400, `the request is not JSON: ${error.message}`);
    }
    if (value === null || typeof value !== "object" || Array.isArray(value)) throw new Refusal(400, "the request is not a JSON object");
    return value;
}

function number(body, name, fallback, min, max) {
    const value = body[name] ?? fallback;
    if (typeof value !== "number" || !(value >= min && value <= max)) {
        throw new Refusal(400, `${name}: want a number from ${min} to ${max}`, "invalid_value", name);
    }
    return value;
}

function readMessages(body) {
    if (!Array.isArray(body.messages) || body.messages.length === 0) {
        throw new Refusal(400, "messages: want at least one message", "invalid_type", "messages");
    }
    return body.messages.map((message, i) => {
        const content = message?.content;
        const role = typeof message?.role === "string" ? message.role : "user";
        if (typeof content === "string") return {role, content};
        if (Array.isArray(content) && content.every((part) => part?.type === "text" && typeof part.text === "string")) {
            return {role, content: content.map((part) => part.text).join("")};
        }
        throw new Refusal(400, `messages[${i}].content: want a string or parts of type text`, "invalid_type", "messages");
    });
}

/** promptTokens gives the tokens that the model continues. */
function promptTokens(body, chat) {
    if (!chat && typeof body.prompt !== "string") throw new Refusal(400, "prompt: want a string", "invalid_type", "prompt");
    const written = chat && chatTemplate !== null; // only a template's text has special tokens in it
    const text = chat ? chatText(readMessages(body)) : body.prompt;
    const prompt = model.tokenize(text, written);
    const {bos, shouldPrependBosToken} = model.tokens;
    if (shouldPrependBosToken && bos != null && prompt[0] !== bos) prompt.unshift(bos);
    return prompt;
}

function chatText(messages) {
    if (chatTemplate === null) return messages.map((message) => message.content).join("\n");
    try {
        return chatTemplate.render({messages, add_generation_prompt: true, bos_token: model.tokens.bosString ?? "", eos_token: model.tokens.eosString ?? ""});
    } catch (error) {
        throw new Refusal(400, `messages: the chat template refuses them: ${error.message}`, "invalid_value", "messages");
    }
}

/** alternatives gives how many a token is to have, or null when no log-probability is asked for. */
function alternatives(body, chat) {
    if (!chat) return body.logprobs == null || body.logprobs === false ? null : Math.trunc(number(body, "logprobs", 0, 0, MAX_TOP));
    if (body.logprobs !== true) {
        if (body.top_logprobs) throw new Refusal(400, "top_logprobs: wants logprobs: true", "invalid_value", "top_logprobs");
        return null;
    }
    return Math.trunc(number(body, "top_logprobs", 0, 0, MAX_TOP));
}

/** readGrammar resolves to the grammar of response_format, or to undefined. */
async function readGrammar(body) {
    const format = body.response_format;
    if (format == null || format.type === "text") return undefined;
    try {
        if (format.type === "json_object") return await llama.getGrammarFor("json");
        if (format.type === "json_schema") return await llama.createGrammarForJsonSchema(format.json_schema.schema);
    } catch (error) {
        throw new Refusal(400, `response_format: ${error.message}`, "invalid_value", "response_format");
    }
    throw new Refusal(400, "response_format: want the type text, json_object or json_schema", "invalid_value", "response_format");
}

function stopWords(body) {
    const words = body.stop == null ? [] : [body.stop].flat();
    if (words.length > 16 || words.some((word) => typeof word !== "string" || word === "")) {
        throw new Refusal(400, "stop: want up to 16 strings that are not empty", "invalid_type", "stop");
    }
    return words;
}

/** readOrder turns a request body into what the engine has to do, or throws a Refusal. */
async function readOrder(body, chat) {
    for (const name of ["tools", "suffix", "echo", "logit_bias"]) {
        const asked = body[name];
        if (asked && Object.keys(Object(asked)).length + Number(asked === true) > 0) throw new Refusal(400, `${name}: not supported here`, "unsupported_parameter", name);
    }
    number(body, "n", 1, 1, 1);
    const prompt = promptTokens(body, chat);
    if (prompt.length === 0) throw new Refusal(400, "the prompt is empty", "invalid_value", chat ? "messages" : "prompt");
    const room = contextSize - prompt.length;
    if (room < 1) {
        throw new Refusal(400, `the prompt has ${prompt.length} tokens, which leaves no room in the context of ${contextSize} tokens`, "context_length_exceeded", chat ? "messages" : "prompt");
    }
    const limit = body.max_completion_tokens != null ? "max_completion_tokens" : "max_tokens";
    return {
        chat,
        id: (chat ? "chatcmpl-" : "cmpl-") + randomUUID(),
        created: Math.floor(Date.now() / 1000),
        stream: body.stream === true,
        includeUsage: body.stream_options?.include_usage === true,
        prompt,
        maxTokens: Math.min(Math.trunc(number(body, limit, room, 1, Number.MAX_SAFE_INTEGER)), room),
        stop: stopWords(body),
        cachePrompt: body.cache_prompt !== false,
        alternatives: alternatives(body, chat),
        grammar: await readGrammar(body),
        sampling: {
            temperature: number(body, "temperature", DEFAULTS.temperature, 0, 10),
            topP: number(body, "top_p", DEFAULTS.top_p, 0, 1),
            topK: number(body, "top_k", DEFAULTS.top_k, 0, 1 << 20),
            seed: Math.trunc(number(body, "seed", randomInt(2 ** 31), -(2 ** 53), 2 ** 53)) >>> 0,
            tokenBias: body.ignore_eos === true ? neverEnding() : undefined,
        },
    };
}

function neverEnding() {
    const bias = new TokenBias(model.tokenizer);
    for (const token of [model.tokens.eos, model.tokens.eot]) {
        if (token != null) bias.set(token, "never");
    }
    return bias;
}

/** Clock keeps the instants of one request, in milliseconds of the process's monotonic clock. */
class Clock {
    arrived = performance.now();
    begun = NaN;
    first = NaN;
    last = NaN;
    cached = 0;
    predicted = 0;

    token() {
        this.last = performance.now();
        if (this.predicted++ === 0) this.first = this.last;
    }

    timings(promptTokens) {
        const computed = promptTokens - this.cached;
        const promptMs = this.first - this.begun, predictedMs = this.last - this.first;
        return {
            cache_n: this.cached,
            prompt_n: computed,
            prompt_ms: promptMs,
            prompt_per_token_ms: promptMs / computed,
            prompt_per_second: 1000 * computed / promptMs,
            predicted_n: this.predicted,
            predicted_ms: predictedMs,
            predicted_per_token_ms: predictedMs / this.predicted,
            predicted_per_second: predictedMs > 0 ? 1000 * this.predicted / predictedMs : 0,
            queue_ms: this.begun - this.arrived,
        };
    }
}

/** reuse leaves on the sequence what it holds of the prompt's beginning, and resolves to how many tokens that is; one at least is left to compute. */
async function reuse(sequence, order) {
    const held = order.cachePrompt ? Math.min(sharedTokens(sequence.contextTokens, order.prompt), order.prompt.length - 1) : 0;
    await sequence.eraseContextTokenRanges([{start: held, end: sequence.nextTokenIndex}]);
    return sequence.nextTokenIndex;
}

/** generate runs one order on a sequence, calls write with each piece of text, and resolves to the finish reason. */
async function generate(sequence, order, clock, gone, write) {
    const speller = new Speller((tokens, before) => model.detokenize(tokens, false, before), order.prompt);
    const filter = new StopFilter(order.stop);
    let finish = "length";
    clock.cached = await reuse(sequence, order);
    const wanted = order.alternatives === null ? {} : {confidence: true, probabilities: order.alternatives > 0};
    const grammarEvaluationState = order.grammar && new LlamaGrammarEvaluationState({model, grammar: order.grammar});
    const steps = sequence.evaluateWithMetadata(order.prompt.slice(clock.cached), wanted, {...order.sampling, grammarEvaluationState, yieldEogToken: true});
    let said = []; // log-probabilities of tokens whose text is not out yet
    for await (const step of steps) {
        const token = step.token;
        clock.token();
        if (gone.aborted) return "abort";
        if (model.isEogToken(token)) {
            finish = "stop";
            break;
        }
        if (order.alternatives !== null) said.push(logprob(order, step));
        const piece = filter.add(speller.add(token));
        write(piece, said);
        if (piece !== "") said = [];
        if (filter.stopped) return "stop";
        if (clock.predicted >= order.maxTokens) break;
    }
    write(filter.add(speller.rest()) + filter.rest(), said);
    return filter.stopped ? "stop" : finish;
}

/** logprob gives what a step says of its token and of those that could have come instead. */
function logprob(order, step) {
    const entry = (token, probability) => {
        const text = model.detokenize([token], true);
        // A token that cannot come has log 0, which JSON has not.
        return {token: text, logprob: Math.max(Math.log(probability), -9999), bytes: [...Buffer.from(text)]};
    };
    const top = order.alternatives === 0 ? [] : [...step.probabilities].slice(0, order.alternatives);
    return {...entry(step.token, step.confidence), top_logprobs: top.map(([token, probability]) => entry(token, probability))};
}

/** logprobs gives the field of an answer: of a chat a list of tokens, of a completion four lists. */
function logprobs(order, said) {
    if (order.alternatives === null) return null;
    if (order.chat) return {content: said};
    return {
        tokens: said.map((one) => one.token),
        token_logprobs: said.map((one) => one.logprob),
        top_logprobs: said.map((one) => Object.fromEntries(one.top_logprobs.map((other) => [other.token, other.logprob]))),
    };
}

function choice(order, text, finish, piece, said) {
    const more = {logprobs: said.length === 0 && piece ? null : logprobs(order, said), finish_reason: finish};
    if (!order.chat) return {index: 0, text, ...more};
    if (piece) return {index: 0, delta: finish === null ? {content: text} : {}, ...more};
    return {index: 0, message: {role: "assistant", content: text}, ...more};
}

function envelope(order, choices, more = {}) {
    const kind = !order.chat ? "text_completion" : order.stream ? "chat.completion.chunk" : "chat.completion";
    return {id: order.id, object: kind, created: order.created, model: modelName, system_fingerprint: fingerprint, choices, ...more};
}

/** Stream writes the answer as server-sent events; its head goes out with the first piece, so that a refusal can still have its status. */
class Stream {
    #response;
    #order;

    constructor(response, order) {
        this.#response = response;
        this.#order = order;
    }

    #event(document) { this.#response.write(`data: ${JSON.stringify(document)}\n\n`); }

    #open() {
        if (this.#response.headersSent) return;
        this.#response.writeHead(200, {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"});
        if (this.#order.chat) {
            const delta = {role: "assistant", content: ""};
            this.#event(envelope(this.#order, [{index: 0, delta, logprobs: null, finish_reason: null}]));
        }
    }

    // The buffer behind write is bounded by the context: a token is one small event.
    text(piece, said) {
        if (piece === "") return;
        this.#open();
        this.#event(envelope(this.#order, [choice(this.#order, piece, null, true, said)]));
    }

    end(finish, usage, timings) {
        this.#open();
        const last = [choice(this.#order, "", finish, true, [])];
        if (this.#order.includeUsage) {
            this.#event(envelope(this.#order, last, {usage: null}));
            this.#event(envelope(this.#order, [], {usage, timings}));
        } else {
            this.#event(envelope(this.#order, last, {timings}));
        }
        this.#response.end("data: [DONE]\n\n");
    }

    fail(error) {
        this.#event({error: {message: error.message, type: "server_error", param: null, code: 500}});
        this.#response.end();
    }
}

/** Whole collects the answer and writes it as one JSON document. */
class Whole {
    #response;
    #order;
    #text = "";
    #said = [];

    constructor(response, order) {
        this.#response = response;
        this.#order = order;
    }

    text(piece, said) {
        this.#text += piece;
        if (piece !== "") this.#said.push(...said);
    }

    end(finish, usage, timings) {
        sendJSON(this.#response, 200, envelope(this.#order, [choice(this.#order, this.#text, finish, false, this.#said)], {usage, timings}));
    }
}

function sendJSON(response, status, document) {
    const body = Buffer.from(JSON.stringify(document));
    response.writeHead(status, {"Content-Type": "application/json; charset=utf-8", "Content-Length": body.length});
    response.end(body);
}

function count(order, clock) {
    const used = order.prompt.length + clock.predicted;
    totals.maxTokens = Math.max(totals.maxTokens, used);
    if (clock.predicted === 0) return;
    totals.promptTokens += order.prompt.length - clock.cached;
    totals.cachedTokens += clock.cached;
    totals.promptMs += clock.first - clock.begun;
    totals.predictedTokens += clock.predicted;
    totals.predictedMs += clock.last - clock.first;
}

async function complete(request, response, chat) {
    const clock = new Clock();
    const left = new AbortController();
    let leftAt = NaN;
    response.on("close", () => {
        if (response.writableFinished) return;
        leftAt = performance.now();
        left.abort();
    });
    const order = await readOrder(await readJSON(request), chat);
    const answer = order.stream ? new Stream(response, order) : new Whole(response, order);
    const sequence = await slots.take(order.prompt, left.signal);
    if (sequence === null) return;
    clock.begun = performance.now();
    try {
        const finish = await generate(sequence, order, clock, left.signal, (piece, said) => answer.text(piece, said));
        count(order, clock);
        if (finish === "abort") {
            totals.aborted++;
            totals.abortedCached += clock.predicted > 0 ? clock.cached : 0;
            totals.abortMs = Math.max(totals.abortMs, performance.now() - leftAt);
            return;
        }
        if (clock.predicted === 0) throw new Error("the engine gave no token");
        const usage = {
            prompt_tokens: order.prompt.length,
            completion_tokens: clock.predicted,
            total_tokens: order.prompt.length + clock.predicted,
            prompt_tokens_details: {cached_tokens: clock.cached},
        };
        answer.end(finish, usage, clock.timings(order.prompt.length));
    } catch (error) {
        if (!response.headersSent) throw error;
        answer.fail(error);
    } finally {
        slots.give(sequence);
    }
}

// metrics leaves out what the library does not tell: n_decode_total and
// n_busy_slots_per_decode.
function metrics() {
    const rate = (tokens, ms) => ms > 0 ? 1000 * tokens / ms : 0;
    const rows = [
        ["prompt_tokens_total", "counter", "Number of prompt tokens processed.", totals.promptTokens],
        ["prompt_seconds_total", "counter", "Prompt process time", totals.promptMs / 1000],
        ["tokens_predicted_total", "counter", "Number of generation tokens processed.", totals.predictedTokens],
        ["tokens_predicted_seconds_total", "counter", "Predict process time", totals.predictedMs / 1000],
        ["n_tokens_max", "counter", "Largest observed n_tokens.", totals.maxTokens],
        ["prompt_tokens_seconds", "gauge", "Average prompt throughput in tokens/s.", rate(totals.promptTokens, totals.promptMs)],
        ["predicted_tokens_seconds", "gauge", "Average generation throughput in tokens/s.", rate(totals.predictedTokens, totals.predictedMs)],
        ["prompt_tokens_cached_total", "counter", "Number of prompt tokens that a sequence still held.", totals.cachedTokens],
        ["requests_aborted_total", "counter", "Number of requests whose client left while they ran.", totals.aborted],
        ["prompt_tokens_cached_aborted_total", "counter", "Number of the cached prompt tokens that belonged to aborted requests.", totals.abortedCached],
        ["abort_seconds_max", "gauge", "Longest time from a client's leaving to the end of its work.", totals.abortMs / 1000],
        ["requests_processing", "gauge", "Number of requests processing.", slots.busy],
        ["requests_deferred", "gauge", "Number of requests deferred.", slots.waiting],
    ];
    return rows.map(([name, type, help, value]) =>
        `# HELP llamacpp:${name} ${help}\n# TYPE llamacpp:${name} ${type}\nllamacpp:${name} ${value}\n`).join("");
}

const routes = {
    "GET /health": (_, response) => sendJSON(response, 200, {status: "ok"}),
    "GET /metrics": (_, response) => {
        response.writeHead(200, {"Content-Type": "text/plain; version=0.0.4"});
        response.end(metrics());
    },
    "GET /v1/models": (_, response) => sendJSON(response, 200, {object: "list", data: [{
        id: modelName, object: "model", created: started, owned_by: "llamacpp",
        meta: {n_vocab: model.fileInfo.metadata?.tokenizer?.ggml?.tokens?.length, n_ctx: contextSize, n_ctx_train: model.trainContextSize, n_embd: model.embeddingVectorSize, size: model.size},
    }]}),
    "GET /props": (_, response) => sendJSON(response, 200, {
        default_generation_settings: {n_ctx: contextSize, params: DEFAULTS},
        total_slots: sequences,
        model_path: path.resolve(flags.model),
        chat_template: typeof templateText === "string" ? templateText : "",
        build_info: fingerprint,
    }),
    "POST /tokenize": async (request, response) => {
        const body = await readJSON(request);
        if (typeof body.content !== "string") throw new Refusal(400, "content: want a string", "invalid_type", "content");
        const tokens = model.tokenize(body.content, body.parse_special !== false);
        if (body.add_special === true && model.tokens.shouldPrependBosToken && model.tokens.bos != null) tokens.unshift(model.tokens.bos);
        sendJSON(response, 200, {tokens});
    },
    "POST /v1/completions": (request, response) => complete(request, response, false),
    "POST /v1/chat/completions": (request, response) => complete(request, response, true),
};

async function serve(request, response) {
    const id = request.headers["x-request-id"];
    if (id) response.setHeader("X-Request-ID", id);
    try {
        const route = routes[`${request.method} ${request.url.split("?", 1)[0]}`];
        if (!route) throw new Refusal(404, `no such resource: ${request.method} ${request.url}`);
        await route(request, response);
    } catch (error) {
        if (response.destroyed || response.headersSent) {
            response.destroy();
        } else if (error instanceof Refusal) {
            // What is left of the request is not read, so the connection cannot be used again.
            if (!request.complete) response.setHeader("Connection", "close");
            sendJSON(response, error.status, error.body);
        } else {
            console.error("server:", error);
            sendJSON(response, 500, {error: {message: error.message, type: "server_error", param: null, code: 500}});
        }
    }
}

// Idle connections stay open for longer than any pause inside a test.
const server = http.createServer({keepAliveTimeout: 75_000}, serve);
server.on("error", (error) => {
    console.error(`server: listening on 127.0.0.1:${port}: ${error.message}`);
    process.exit(1);
});
server.listen(port, "127.0.0.1", () => console.log(`listening 127.0.0.1:${server.address().port}`));

const stop = () => process.exit(0);
process.on("SIGTERM", stop);
process.on("SIGINT", stop);
if (fstatSync(0, {throwIfNoEntry: false})?.isFIFO()) process.stdin.on("end", stop).on("error", stop).resume();
