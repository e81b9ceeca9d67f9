//go:build !linux

package pace

func newAlarm() alarm { return nil }
