package host

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestParseGPUs reads captures of three versions of nvidia-smi's XML, cut to the
// fields around those that are read. What a driver says it cannot tell is "".
func TestParseGPUs(t *testing.T) {
	const uuid = "GPU-00000000-0000-0000-0000-000000000001"
	for file, want := range map[string]GPU{
		"a100-v12.xml":    {Model: "NVIDIA A100-SXM4-80GB", Memory: "81920 MiB", MIG: "Enabled", ECC: "Enabled", VBIOS: "92.00.36.00.02", Driver: "535.54.03", CUDA: "12.2", PowerLimit: "500.00 W", ClockLimit: "1275 MHz", UUID: uuid, Serial: "1650500000001"},
		"rtx3080-v13.xml": {Model: "NVIDIA GeForce RTX 3080", Memory: "10240 MiB", VBIOS: "94.02.71.40.72", Driver: "595.58.03", CUDA: "13.2", PowerLimit: "320.00 W", ClockLimit: "2100 MHz", UUID: uuid, Serial: "REDACTED"},
		"t4-v11.xml":      {Model: "Tesla T4", Memory: "15360 MiB", ECC: "Enabled", VBIOS: "90.04.84.00.06", Driver: "515.105.01", CUDA: "11.7", PowerLimit: "70.00 W", ClockLimit: "585 MHz", UUID: uuid, Serial: "1650500000001"},
	} {
		text, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseGPUs(text)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if diff := cmp.Diff([]GPU{want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
		for _, cut := range []int{0, len(text) / 3, len(text) / 2} {
			if _, err := ParseGPUs(text[:cut]); err == nil {
				t.Errorf("%s cut at %d is read", file, cut)
			}
		}
	}
	for _, text := range []string{"", "<a/>", "NVIDIA-SMI has failed", "<nvidia_smi_log>" + strings.Repeat("<gpu></gpu>", maxGPUs+1) + "</nvidia_smi_log>"} {
		if gpus, err := ParseGPUs([]byte(text)); err == nil {
			t.Errorf("%.40q gives %v, want an error", text, gpus)
		}
	}
}

// FuzzParseGPUs takes anything for the output of nvidia-smi.
func FuzzParseGPUs(f *testing.F) {
	f.Add([]byte("<nvidia_smi_log><driver_version>1</driver_version><gpu><product_name>a</product_name></gpu></nvidia_smi_log>"))
	f.Fuzz(func(t *testing.T, text []byte) {
		gpus, err := ParseGPUs(text)
		if (err == nil) != (len(gpus) > 0) {
			t.Errorf("%d GPUs and the error %v", len(gpus), err)
		}
	})
}
