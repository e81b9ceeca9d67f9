// Package check is the plug between a model that answers and the judgements
// about its answers.
//
// A check asks questions of a variant through an [Asker] and reads the
// [Answer]s. It never sees a connection: who answers, how often a failed request
// is tried again, what it may cost and what is already known are the business of
// whoever hands it the Asker. So the same check runs against a real endpoint, a
// recorded one and one that is made wrong on purpose.
//
// A question that got no answer has an Answer that says so in its Outcome. It is
// never an empty text, and never counts as right or wrong: checks count it as
// missing.
//
// # A check
//
// A [Check] is data and one function. The suite declares it with a configuration;
// [Run] runs all that are declared, each after those that it reads, and gives it
// a [Pass]: the variants to ask, judges and embedders, sets of cases, a source of
// random numbers. A check asks with [Pass.Ask], which gives every variant the
// same question, one right after the other; writes numbers on the records of what
// it asked with [Trial.Set]; and reports what a person should see with
// [Pass.Report]. What is a number of no case but of the whole, such as an effective
// length, it leaves with [Pass.Estimate]. It does not grade: a contract does, by its
// numbers, which it names CHECK.VALUE.
//
//	var Answers = &check.Check{
//		Name: "answers", Doc: "whether answers are empty, cut or refused",
//		Values: func(any) []check.Value { return []check.Value{{Name: "empty", YesNo: true}} },
//		Run: func(ctx context.Context, p *check.Pass) error {
//			trials, err := p.Ask(ctx, shots)
//			for _, t := range trials {
//				for i, a := range t.Answers { … t.Set(i, "empty", 1) … }
//			}
//			return err
//		},
//	}
//
// # What the driver owes
//
// Every case that was asked is one record.Record of the run, whose workload is
// the check. Records of one question have one shot number in all variants, by
// which they are paired, and as session what is independent of each other. A
// declared value that a record does not have is missing, unless the check said
// that it cannot be there ([Trial.Exempt]); neither is ever 0.
//
// Each answer is saved under its [Key] before a check sees it. So a run that was
// interrupted asks nothing twice, and gives the same outcomes as one that was
// not; the replicate is part of the key, so that repetitions are never served by
// one answer. What a private question was answered is kept sealed with a secret, or
// not at all. A failure of transport is tried again, a few times; a bad answer
// never. When the [Budget] is spent, questions under way are let finish, and what
// has no answer then stays without.
//
// A check that cannot run, breaks or runs out of budget has an [Outcome] that
// says why. It is never absent, and nothing that rests on it passes.
//
// Checks run one after the other; within one, up to [Config].PerEndpoint
// questions to each endpoint and Overall of them in all are under way.
package check
