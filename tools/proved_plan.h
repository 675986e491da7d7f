// The proof of a command's plan, before anything is written and in every dry run.
#pragma once

#include "convert/jobs/proof.h"
#include "tools/options/convert_options.h"
#include "tools/render/convert_report.h"

namespace mckpt {

// Proves it in rank 0, on behalf of all ranks, and puts the account into the report. Throws what prove()
// throws.
void prove_plan(const CopyJob& job, ProofInput input, const ConvertOptions& options, ConvertReport& report);

}  // namespace mckpt
