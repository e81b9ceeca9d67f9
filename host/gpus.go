package host

import (
	"encoding/xml"
	"errors"
	"fmt"
	"strings"
)

// GPU is what nvidia-smi tells of one GPU that does not change while it works. "" is
// what it does not tell: N/A, and the words with which drivers say so.
type GPU struct {
	Model  string
	Memory string // "81559 MiB"
	MIG    string // Enabled, Disabled
	ECC    string // Enabled, Disabled
	VBIOS  string
	Driver string // of all GPUs of the machine
	CUDA   string // that the driver supports

	PowerLimit string // "700.00 W"
	ClockLimit string // of the SMs: the application clock where it can be set, else the greatest

	UUID, Serial string
}

// smi is the XML of nvidia-smi -q -x, of its versions 10 to 13.
type smi struct {
	Driver string `xml:"driver_version"`
	CUDA   string `xml:"cuda_version"`
	GPUs   []struct {
		Model  string `xml:"product_name"`
		UUID   string `xml:"uuid"`
		Serial string `xml:"serial"`
		VBIOS  string `xml:"vbios_version"`
		Memory string `xml:"fb_memory_usage>total"`
		MIG    string `xml:"mig_mode>current_mig"`
		ECC    string `xml:"ecc_mode>current_ecc"`
		Power  string `xml:"gpu_power_readings>current_power_limit"`
		Older  string `xml:"power_readings>power_limit"` // before version 12
		Set    string `xml:"applications_clocks>graphics_clock"`
		Most   string `xml:"max_clocks>sm_clock"`
	} `xml:"gpu"`
}

// maxGPUs and maxSMI bound what is read of nvidia-smi.
const (
	maxGPUs = 64
	maxSMI  = 16 << 20
)

// ParseGPUs reads what nvidia-smi -q -x prints.
func ParseGPUs(text []byte) ([]GPU, error) {
	if len(text) > maxSMI {
		return nil, fmt.Errorf("reading the GPUs: nvidia-smi prints more than %d bytes", maxSMI)
	}
	var x smi
	dec := xml.NewDecoder(strings.NewReader(string(text)))
	dec.Strict = true
	if err := dec.Decode(&x); err != nil {
		return nil, fmt.Errorf("reading the GPUs: %w", err)
	}
	switch {
	case len(x.GPUs) == 0:
		return nil, errors.New("reading the GPUs: nvidia-smi names none")
	case len(x.GPUs) > maxGPUs:
		return nil, fmt.Errorf("reading the GPUs: nvidia-smi names more than %d", maxGPUs)
	}
	var out []GPU
	for _, g := range x.GPUs {
		one := GPU{
			Model: told(g.Model), Memory: told(g.Memory), MIG: told(g.MIG), ECC: told(g.ECC), VBIOS: told(g.VBIOS), Driver: told(x.Driver), CUDA: told(x.CUDA),
			PowerLimit: told(g.Power), ClockLimit: told(g.Set), UUID: told(g.UUID), Serial: told(g.Serial),
		}
		if one.PowerLimit == "" {
			one.PowerLimit = told(g.Older)
		}
		if one.ClockLimit == "" {
			one.ClockLimit = told(g.Most)
		}
		out = append(out, one)
	}
	return out, nil
}

// told returns what a field says, "" if it says that it does not.
func told(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	switch s {
	case "N/A", "[N/A]", "[Not Supported]", "Not Supported", "[Unknown Error]", "Unknown Error", "GPU requires reset", "[GPU requires reset]":
		return ""
	}
	if strings.Contains(s, "functionality has been deprecated") {
		return ""
	}
	return s
}
