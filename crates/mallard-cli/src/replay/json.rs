//! Formats the result of a replay as JSON.

use super::report::{Report, Row};
use mallard_measure::rounds::subject::Figures;
use serde_json::{json, Value};

impl Report<'_> {
    /// Returns the whole result.
    pub fn json(&self) -> Value {
        let compiled = &self.candidates.streams[0].compiled;
        let mut base = self.figures(&self.candidates.base.name, 0, 0);
        base["control_cpu"] = json!(self.cpu.control);
        base["control_memory"] = json!(self.memory.control);
        json!({
            "trace": self.trace.folder().to_string_lossy(),
            "process": compiled.process,
            "program_cpu_ns": self.program.cpu_ns,
            "program_cpu_range": self.program.cpu_range,
            "threads": self.program.threads,
            "cores": self.program.cores,
            "contention": if self.program.lacks_cores() { "not measurable" } else { "replayed" },
            "touch": self.candidates.touch,
            "ops": compiled.ops,
            "calls": compiled.calls,
            "live_peak_bytes": compiled.live_peak,
            "validity": compiled.validity.iter().map(|v| v.sentence.as_str()).collect::<Vec<_>>(),
            "base": base,
            "candidates": self.rows().iter().map(|row| self.row_json(row)).collect::<Vec<_>>(),
            "blocks": self.measured.rounds(),
            "min_gain": self.command.timing.min_gain,
            "seed": self.seed,
            "interrupted": self.measured.interrupted,
            "notes": self.notes,
            "sentence": self.sentence(),
            "next": self.next(),
        })
    }

    fn row_json(&self, row: &Row) -> Value {
        let candidate = row.candidate;
        let column = candidate.measured.map_or(0, |subject| subject + 2);
        let stream = &self.candidates.streams[candidate.stream];
        let mut object = self.figures(&candidate.name, column, candidate.stream);
        object["broken"] = json!(row.broken);
        object["measured_as"] = json!(candidate.measured_as);
        object["cpu"] = json!(row.judged.as_ref().map(|(cpu, ..)| cpu));
        object["fresh"] = json!(self.fresh(candidate));
        object["memory"] = json!(row.judged.as_ref().map(|(_, memory, _)| memory));
        object["parts"] = json!(row.judged.as_ref().map(|(.., parts)| parts));
        let predicted = self.predicted(row);
        object["predicted"] = json!(predicted.map(|(low, high)| json!({"low": low, "high": high})));
        object["virtual_calls"] = json!(candidate.virtual_calls);
        object["virtual_call_ns"] =
            json!(self.candidates.virtual_ns.filter(|_| candidate.virtual_calls > 0));
        object["account"] = match candidate.stream {
            0 => Value::Null,
            _ => json!({
                "counted": stream.account.counted,
                "requested_peak_bytes": stream.account.requested_peak_bytes,
                "rules": stream.compiled.rules.iter().map(|rule| json!({
                    "instances": rule.instances,
                    "blocks": rule.blocks,
                    "bytes": rule.bytes,
                    "escapes": rule.escapes,
                    "peak_bytes_median": rule.peaks.median(),
                    "peak_bytes_max": rule.peaks.max(),
                })).collect::<Vec<_>>(),
            }),
        };
        object
    }

    /// Returns the medians of a column of the measurement (see `mallard_measure::rounds`) as JSON.
    fn figures(&self, name: &str, column: usize, stream: usize) -> Value {
        let median = |f: fn(&Figures) -> f64| {
            Some(self.measured.median(column, f)).filter(|m| m.is_finite())
        };
        json!({
            "name": name,
            "calls_cpu_ns": Some(self.calls_ns(column, stream)).filter(|ns| ns.is_finite()),
            "cpu_ns": median(|f| f.cpu_ns),
            "system_ns": median(|f| f.system_ns),
            "wall_ns": median(|f| f.wall_ns).filter(|_| !self.program.lacks_cores()),
            "heap_peak_bytes": median(|f| f.peak_rss),
            "page_faults": median(|f| f.faults),
        })
    }
}
