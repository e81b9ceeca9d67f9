// Package stat turns series of numbers into estimates with intervals. It knows nothing of language models.
package stat
