// Both ways of loading make a job whose destinations are the model's memory, and give it to the block loader.
// The groups' weights are marked as being written from the beginning to the end.
#include "live/load/load.h"

#include "convert/jobs/chunk_jobs.h"
#include "convert/jobs/proof.h"
#include "convert/plan/model_proofs.h"
#include "core/fsdp/grid.h"
#include "io/copy/counts.h"
#include "io/store/store.h"
#include "live/load/block_loader.h"
#include "live/model/all_chunks.h"
#include "live/model/chunks.h"
#include "live/model/group.h"
#include "live/model/live_proof.h"
#include "live/model/model.h"
#include "live/model/pending_writes.h"
#include "live/model/shape_exchange.h"
#include "runtime/comm/comm.h"

namespace mckpt::impl {
namespace {

// The chunks of a load: this rank's, and on rank 0 the chunks of all ranks, whose job is proved.
struct LoadPlan {
  LoadPlan(const LiveModel& model, const KeyTable& keys) : mine(model, keys) {
    if (model.world().rank() == 0) all = std::make_unique<AllChunks>(model, keys);
  }

  LiveChunks mine;
  std::unique_ptr<AllChunks> all;  // on rank 0
};

CopyCounts run_load(LiveModel& model, const LiveChunks& chunks, const CopyJob& job,
                    const BlockLoadOptions& options) {
  model.allocate();
  std::vector<PendingWrites::Write> writes;
  for (LiveGroup* group : model.groups()) {
    group->writes().forget_failures();
    writes.push_back(group->writes().begin());
  }
  CopyCounts counts = load_blocks(
      job, [&](i32 file) { return chunks.memory(file).data(); }, model.device(), model.host(),
      model.host_ranks(), options);
  for (PendingWrites::Write& write : writes) write.done();
  model.refresh();
  return counts;
}

// `job_of` makes the job of chunks, `proof_of` what is proved of the chunks of all ranks.
template <typename JobOf, typename ProofOf>
CopyCounts load(LiveModel& model, const KeyTable& keys, const BlockLoadOptions& options, JobOf job_of,
                ProofOf proof_of) {
  model.refuse_unsharded(0, "loaded");
  exchange_shapes(model);
  LoadPlan plan(model, keys);
  std::optional<ChunkJob> all;
  ProofInput proof;
  if (plan.all) {
    all.emplace(job_of(plan.all->chunks));
    proof = proof_of(*plan.all);
  }
  prove_on_rank_0(all ? &*all : nullptr, std::move(proof), model.world(), options.threads);
  return run_load(model, plan.mine, job_of(plan.mine), options);
}

}  // namespace

// The parameters' types at run time are left out of the setup, so that every key has its source's type.
KeyTable live_keys(const LiveModel& model) {
  const Grid& grid = model.setup().grid;
  const RunSetup& run = model.setup().run;
  return KeyTable(model.map(), {run.vocab_rows, std::nullopt, run.groups, run.spelling, run.whole},
                  {grid.tp, grid.etp});
}

CopyCounts load_from_model(LiveModel& model, const KeyTable& keys, const Store& source,
                           const BlockLoadOptions& options) {
  return load(
      model, keys, options, [&](const auto& chunks) { return import_job(source, keys, chunks); },
      [&](const AllChunks& all) { return import_proof(source, keys, all.chunks, all.plan.layout); });
}

CopyCounts load_from_checkpoint(LiveModel& model, const KeyTable& keys, const Store& checkpoint,
                                const KeyTable& stored_keys, const ChunkList& stored,
                                const BlockLoadOptions& options) {
  return load(
      model, keys, options,
      [&](const auto& chunks) {
        return gather_job(checkpoint, {stored_keys, stored}, {keys, chunks});
      },
      [&](const AllChunks& all) { return gather_proof(stored_keys, all.plan.layout); });
}

}  // namespace mckpt::impl
