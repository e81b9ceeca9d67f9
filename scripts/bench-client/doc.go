// Command bench-client measures the load client against its goals and prints one
// table: quantity, measured, goal, met or missed. Run it from the repository by
//
//	make bench-client
//
// A null server, which parses next to nothing and sends what it has at hand,
// runs in a process of its own, and so does each client under measurement. What
// can be said as a ratio is one: CPU time (user and system, getrusage) of our
// client against that of another client that does the same with the same
// server, in turns, so that both meet the same machine. Wall clock is noise on a
// shared machine; a ratio of CPU times is not. The median of the rounds is
// judged, and the least and greatest stand beside it.
//
//   - requests: [llm.Client.Do] with a new [record.Record] each, 64 connections
//     kept open, tiny answers that are not streamed; against wrk, and against
//     net/http's client that reads the answer, decodes its JSON and notes two
//     times. The same through [load.Driver] and a journal on disk has no goal.
//   - streams: 1,000 streams of 50 events a second; against a goroutine a stream
//     that reads 64 KiB at most from a net.Conn and counts bytes.
//   - flat out: 100 streams whose server never waits.
//   - memory: growth of the resident set by 10,000 open streams, after garbage
//     collection: stacks, buffers, records and connections.
//   - allocations an event: what 900 more events a stream add, by the runtime's
//     count of allocated objects.
//   - stamps: instants on the record less the emit times that the server writes
//     into each event, by the kernel's receive stamps and by the client's own
//     clock; again while every core is kept busy. A read has the stamp of its
//     last segment, so of events that came together only the last has its own.
//   - lateness: first byte sent less the schedule's instant, of an open loop at
//     constant rates through the driver.
//
// The last two are absolute, so the machine is named above the table, and they
// want a quiet one. A goal that was missed does not fail the program; one that
// could not be measured does (exit 4), since nothing is known about it.
package main
