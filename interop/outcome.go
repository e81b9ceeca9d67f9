package interop

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-llm/assay/record"
)

// Failed is the outcome of a request that failed in a way that the file does not
// tell.
const Failed record.Outcome = "failed"

var (
	statusCode = regexp.MustCompile(`\b([1-5][0-9]{2})\b`)
	exception  = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_.]{0,80}(?:Error|Exception|Timeout|Disconnected|Interrupt)\b`)
)

// reasons are the HTTP reason phrases that tools keep in place of the status.
var reasons = map[string]int{
	"bad request": 400, "unauthorized": 401, "forbidden": 403, "not found": 404, "method not allowed": 405, "request timeout": 408,
	"payload too large": 413, "request entity too large": 413, "unprocessable entity": 422, "unprocessable content": 422, "too many requests": 429,
	"internal server error": 500, "not implemented": 501, "bad gateway": 502, "service unavailable": 503, "gateway timeout": 504,
}

// hints are words of error texts and the outcome that they speak of. The first
// that occurs wins.
var hints = []struct {
	word string
	is   record.Outcome
}{
	{"getaddrinfo", record.DNS},
	{"name or service not known", record.DNS},
	{"clientconnectordns", record.DNS},
	{"certificate", record.TLS},
	{"ssl", record.TLS},
	{"connection refused", record.Dial},
	{"cannot connect", record.Dial},
	{"clientconnector", record.Dial},
	{"connecterror", record.Dial},
	{"timeout", record.TotalTimeout},
	{"timed out", record.TotalTimeout},
	{"reset by peer", record.ResetMid},
	{"disconnected", record.ResetMid},
	{"connectionreset", record.ResetMid},
	{"payload is not completed", record.ResetMid},
	{"payloaderror", record.ResetMid},
	{"incompleteread", record.ResetMid},
	{"remoteprotocolerror", record.ResetMid},
	{"jsondecode", record.Malformed},
	{"never received a valid chunk", record.EmptyOutput},
}

// own are the outcomes as Export writes them into an error text.
var own = []record.Outcome{
	record.DNS, record.Dial, record.TLS, record.Write, record.HTTP4xx, record.HTTP5xx, record.HTTPOther, record.ResetBefore, record.ResetMid,
	record.Truncated, record.ErrorEvent, record.Malformed, record.EventTooLarge, record.BodyTooLarge, record.StallTimeout, record.TotalTimeout,
	record.Goaway, record.ClientCancelled, record.EmptyOutput, record.LengthMismatch, record.Filtered, record.ClientOverload, record.ClientFault, record.Interrupted,
}

// failure classifies what a tool says of a failed request. status is an HTTP
// status that the tool gives besides; 0: none. The error text may quote prompts or
// answers, so that only what is surely a name or a code of it is kept.
func failure(r *record.Record, message string, status int) {
	lower := strings.ToLower(message)
	r.Outcome = Failed
	if status == 0 {
		status = reasons[strings.TrimSpace(lower)]
	}
	if at := strings.Index(lower, "status"); status == 0 && at >= 0 {
		if m := statusCode.FindString(message[at:min(len(message), at+40)]); m != "" {
			status, _ = strconv.Atoi(m)
		}
	}
	name, rest, _ := strings.Cut(message, " ")
	is := record.Outcome(strings.TrimSuffix(name, ":"))
	switch {
	case slices.Contains(own, is):
		r.Outcome = is
		if m := statusCode.FindString(rest[:min(len(rest), 4)]); status == 0 && m != "" {
			status, _ = strconv.Atoi(m)
		}
		r.Status = status
	case status >= 400 && status < 500:
		r.Outcome, r.Status = record.HTTP4xx, status
	case status >= 500 && status < 600:
		r.Outcome, r.Status = record.HTTP5xx, status
	default:
		for _, h := range hints {
			if strings.Contains(lower, h.word) {
				r.Outcome = h.is
				break
			}
		}
	}
	if r.Outcome == record.ResetMid && is != record.ResetMid && r.First() == nil {
		r.Outcome = record.ResetBefore
	}
	r.Detail = detail(message)
}

// detail keeps the last exception name of an error text, or a text that is an
// HTTP reason phrase as a whole.
func detail(message string) string {
	message = strings.TrimSpace(message)
	switch all := exception.FindAllString(message, 100); {
	case message == "":
		return "the file gives no reason"
	case len(all) > 0:
		return all[len(all)-1]
	case reasons[strings.ToLower(message)] > 0:
		return message
	}
	return "an error text of " + strconv.Itoa(len(message)) + " bytes, not kept"
}
