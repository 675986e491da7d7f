#include "tools/proved_plan.h"

#include "tools/job.h"

namespace mckpt {

void prove_plan(const CopyJob& job, ProofInput input, const ConvertOptions& options, ConvertReport& report) {
  if (this_job().rank() != 0) return;
  input.threads = options.threads;
  Account a = prove(job, input);
  report.tensors_in = a.tensors_in, report.tensors_out = a.tensors_out;
  report.copied = a.copied, report.fused = a.fused, report.split = a.split;
  report.tied = a.copies + a.repeated;
  report.padded = a.padded, report.changed = a.changed;
  report.dropped = a.dropped, report.invented = a.invented;
}

}  // namespace mckpt
