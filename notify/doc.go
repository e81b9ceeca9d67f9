// Package notify tells people that a gate did not pass, and asks machines to wait.
//
// Message makes what a Slack-compatible webhook takes of a report; Hold what a
// pause hook of a pipeline takes. Post delivers either: it tries again while there
// is hope, gives up in bounded time, follows no redirect, and sends a key with
// each try by which a receiver knows that it has seen the message. Log keeps in
// the run's directory what was delivered, so that a job that runs again tells
// nobody twice.
//
// The address of a webhook is a secret, since whoever knows it can post. It is in
// no error and in no file; the host is.
//
// A verdict is text of the tested service in part, so everything in a message is
// escaped: it mentions nobody and links only where the caller says.
package notify
