// Package assay is the root of Assay, a tool that decides, with evidence,
// whether a new version of an LLM service may go live.
//
// The root holds no code: it carries this glossary and arch_test.go, which
// holds the floors (who may import whom). The program is cmd/assay.
//
// # The one idea
//
// One datum, two producers, one judge. A [record.Record] is what became of one
// request. The load driver produces Records from a plan; the gateway (a later
// piece of work) produces the same Records from live users. A contract judges
// them and gives a verdict. Everything a run shows can be recomputed from its
// records.
//
// # Glossary (one spelling for each noun)
//
//   - Suite: a YAML file that says what to test: variants, workloads, checks, contract.
//   - Variant: a servable version of a service: endpoint, model, engine, flags.
//     Two names are special: baseline and candidate.
//   - Case, Set: one prompt or dialogue with what is expected of it; cases with
//     a digest.
//   - Shot, Plan: one planned request: due offset, case, session, sampling; the
//     plan is a pure function of (spec, seed).
//   - Session, Turn: a dialogue of one user; a turn is due a think time after the
//     answer to the turn before and carries what was said so far.
//   - Scenario, Slot: a dialogue of which it is known what holds after each turn; something
//     that a value is kept of in it.
//   - Record: what became of one shot or one live request: due, sent, first
//     token, token times, done, tokens, outcome, labels, values.
//   - Event: one server-sent event of a streamed answer, stamped when its last
//     byte left the socket.
//   - Check, Value, Finding: one kind of judgement about answers; a number that it
//     writes on the records of what it asked, which contracts judge; something that
//     it saw and a person should.
//   - Profile: checks that need no files, with the clauses that judge a candidate by
//     them: built in, by name.
//   - Twin: a check as it is asked again under load; it writes what each case loses.
//   - Behaviour, Strategy: what an answer does with a request, such as comply or
//     refuse; a way to dress up a request that is to be refused.
//   - Signature: how a number of a check came about: data, judge, estimator,
//     cluster, n and how many are missing. Numbers of two signatures do not compare.
//   - Family, Perturbation: a manner of writing a text again that keeps its meaning, such
//     as typos; a text so written, which is valid if something changed and nothing that
//     must not.
//   - Floor: how far a model is from itself when asked the same twice; drift counts only
//     beyond it.
//   - Capability: what an endpoint was seen to do, such as to honour a seed.
//   - Run: a directory: manifest (all that is needed to repeat it), records,
//     verdict, report.
//   - Lock, Fact: what a run depends on, written down or fixed beforehand; one thing
//     of it, which has a value or the reason why it is not known. Two locks are
//     identical, equivalent, comparable with correction, or not comparable.
//   - Capacity, Probe: the rates between which a service stops bearing its load,
//     as a search finds them; one run of that search, at one rate.
//   - Block: a stretch of the plan that one variant serves alone; the blocks of
//     two variants interleave A B B A so that drift of the machine hits both.
//   - Look: a judgement of a run that may stop early, after some of its blocks; all
//     looks share the chance of a wrong grade that the contract allows.
//   - Estimate: a statistic over records with its interval, its n and its
//     warnings; of a check, a number of all its cases together, such as an
//     effective length, with intervals at any confidence.
//   - Evidence: e-values against "within the margin" and "not within it"; they may
//     be looked at at any time, and those of the steps of a ramp multiply.
//   - Step: a stretch of live traffic over which the split between the variants did
//     not change; tests of different steps multiply and are never pooled.
//   - Clause, Contract: metric, scope, statistic, limit or baseline with a
//     margin, confidence, minimum sample; all, any, not and count groups of
//     clauses; live rules with actions and their recovery.
//   - Verdict, Grade: pass, fail or inconclusive (the zero value), with a reason
//     and the evidence of each clause.
//   - Judge, Criterion, Mark: a model that is asked for a verdict from a closed menu;
//     what it is asked; what came of it, which may be no verdict but is then no
//     number either.
//   - Instrument: the report on a judge held against people's labels.
//   - Registry, Snapshot: what earlier runs measured, appended and never changed;
//     what one run found of one variant, with intervals, and of which Key (workload,
//     model family, precision, engine, hardware class), across which nothing is
//     compared.
//   - Anchor: the snapshot of a key that stays while baselines roll on, so that a
//     slow drift is found by its distance from there.
//   - Delta, Gate: the change of a run since the baseline and since the anchor; one
//     demand on it, which blocks, or marks the candidate.
//   - Screen: a look at the history that says what is unusual, and decides nothing.
//   - Segment, Tally: a text with its references; the sums of what segments have
//     in common with theirs, by cluster, from which scores and intervals come.
//   - Calibration, Repeat: a contract tried on candidates of which it is known what
//     they are, identical to the baseline or worse by a planted difference; one such
//     pair. A false alarm is an identical candidate that fails.
//   - Certificate: the load client's own health, second by second; an unfit
//     client makes a run invalid and its verdict inconclusive.
//   - Ceiling: the highest rate of a Shape (sizes of requests and answers) at which
//     the client on this host is fit, before a server that computes nothing.
//
// Exit codes: 0 pass, 1 fail, 2 usage or configuration, 3 inconclusive, 4 could
// not measure (target, host or client), 130 interrupted.
package assay
