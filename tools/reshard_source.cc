#include "tools/reshard_source.h"

#include "convert/keys/key_section.h"
#include "io/dcp/dcp.h"
#include "tools/render/findings.h"
#include "tools/render/output.h"

namespace mckpt {
namespace {

// Modules of Megatron whose parameters, where they are not stored in parts, may hold several tensors that
// every tensor-parallel rank has its share of: gate and up, z x B C dt, q k v of a gated delta net.
constexpr std::string_view kFusedModules[] = {".in_proj.", ".conv1d.", ".conv1d_", ".linear_fc1."};

// "decoder.layers.0.mlp.experts.linear_fc1.weight12", but not ".weight_w" and ".weight.query".
bool may_be_by_rank(std::string_view name) {
  for (std::string_view module : kFusedModules) {
    std::size_t at = name.rfind(module);
    if (at == name.npos) continue;
    std::string_view rest = name.substr(at + module.size());
    while (!rest.empty() && rest.back() >= '0' && rest.back() <= '9') rest.remove_suffix(1);
    if (rest == "weight" || rest == "bias") return true;
  }
  return false;
}

}  // namespace

void ReshardSource::declare(CommandLine& line) {
  line.flag("--weights-only", weights_only_, "do not copy the states of the optimizer");
  line.option("--rank-states DIR", folder_,
              "read the optimizer states from files ..._rank_R.pt, in which each rank of SRC's training run "
              "saved its own pieces");
  line.option("--source-ep N", source_ep_, "expert-parallel ranks that wrote SRC, if SRC does not say it");
  line.option("--source-hsdp N", source_hsdp_, "HSDP instances that wrote SRC, if SRC does not say it");
  line.flag(
      "--any-model", flags_.any_model,
      "accept a model that mckpt has no table for: all parameters in one buffer, one tensor-parallel rank");
  line.flag("--keep-names", keep_names_,
            "with --any-model: keep every tensor's own name, also where the names follow a convention that "
            "would be translated to that of fsdp_dtensor");
  flags_.declare(line);
}

void ReshardSource::check() {
  if (weights_only_ && folder_)
    throw Error(Code::kUsage,
                "--rank-states brings states, --weights-only leaves them behind: give one of them");
  if (!folder_ && (source_ep_ || source_hsdp_))
    throw Error(Code::kUsage, "--source-ep and --source-hsdp are said of the run that wrote --rank-states");
  if (flags_.any_model && (flags_.assets || folder_))
    throw Error(Code::kUsage,
                "--any-model is of models without tables: --assets and --rank-states go by them");
  if (keep_names_ && !flags_.any_model)
    throw Error(Code::kUsage, "--keep-names is of models without tables").help("give --any-model too");
  flags_.parts = weights_only_ || folder_ ? NamesOf::kModel : NamesOf::kAll;
  flags_.renamed = flags_.keep_layers = true;
}

void ReshardSource::open(const std::string& path, const GlobalFlags& flags) {
  model_.open(path, flags_, flags);
  if (any_model()) paths_ = dcp_paths(model_.on_disk());
}

DcpName ReshardSource::named(const std::string& item) const {
  auto at = paths_ ? paths_->find(item) : DcpPaths::const_iterator();
  return paths_ && at != paths_->end() ? at->second : DcpName{item, nesting_dots(item)};
}

std::unique_ptr<Store> ReshardSource::open_plain(const std::string& path, const GlobalFlags& flags) {
  if (!flags_.any_model) return nullptr;
  std::unique_ptr<Store> store = open_store(path);
  if (dcp_dialect(*store) != DcpDialect::kPlain && !keep_names_) return nullptr;
  refuse_damage(*store, flags_.parts, flags_.accept, flags);
  return store;
}

void ReshardSource::refuse_ranks_of_unknown_model() const {
  if (!any_model()) return;
  const Store& store = model_.store();
  const RunFacts& run = model_.run();
  auto refuse = [&](std::string_view arg, i64 ranks) {
    throw Error(
        Code::kUnknownPartition,
        "of a model without tables, what several tensor-parallel ranks wrote is not brought onto one: "
        "fused tensors are stored rank after rank")
        .file(store.root())
        .expected(cat(arg, " 1"))
        .found(ranks)
        .help(
            said_any_model()
                ? "--assets HF_DIR in place of --any-model names the model; or --keep-names, which leaves "
                  "args as they are, for a run with the same tensor-parallel ranks"
                : "reshard the checkpoint before its layers get the names of another form, or after convert "
                  "hybrid-to-gpt or ungroup");
  };
  if (run.tensor_ranks.value_or(1) != 1) refuse("tensor_model_parallel_size", *run.tensor_ranks);
  if (run.expert_tensor_ranks.value_or(1) != 1)
    refuse("expert_tensor_parallel_size", *run.expert_tensor_ranks);
  if (run.tensor_ranks || dcp_dialect(model_.on_disk()) != DcpDialect::kFsdpDtensor) return;
  for (i64 t = 0; t < store.tensor_count(); t++)
    if (may_be_by_rank(store.name(t)))
      throw Error(Code::kUnknownPartition,
                  "it is not known with how many tensor-parallel ranks this was written")
          .file(store.root())
          .tensor(store.name(t))
          .expected("one, where the model has no tables")
          .note("it may be stored fused, rank after rank, so what lies where depends on that number")
          .help("--source-tp 1 says that it was one");
}

// The run that wrote them is the one that wrote the checkpoint; what of it matters is how many ranks shared
// what.
void ReshardSource::open_rank_states(const Adjust& adjust, const GlobalFlags& flags) {
  if (!folder_) return;
  if (any_model())
    throw Error(Code::kUnknownAssets,
                "--rank-states goes by the tables of a model, whose layers have other names")
        .file(model_.store().root())
        .help("reshard the checkpoint before its layers get the names of another form");
  const RunFacts& run = model_.run();
  if (!run.tensor_ranks)
    throw Error(Code::kUnknownPartition,
                "it is not known with how many tensor-parallel ranks SRC was written")
        .file(model_.store().root())
        .help("give it with --source-tp N");
  Grid grid;
  const Store& disk = model_.on_disk();
  grid.tp = *run.tensor_ranks;
  grid.etp = run.expert_tensor_ranks.value_or(1);
  grid.ep = agreed_ranks(disk, run.expert_ranks, "--source-ep", source_ep_).value_or(1);
  grid.hsdp = agreed_ranks(disk, run.fsdp_instances, "--source-hsdp", source_hsdp_).value_or(1);
  states_ = std::make_unique<RankStates>(*folder_, model_.map(), model_.setup(), grid, adjust);
  tell_findings(flags, states_->findings(), states_->root());
  joined_ = std::make_unique<JoinedStore>(model_.store(), *states_);
}

bool ReshardSource::left_behind(i32 tensor) const {
  bool optimizer = store().name(tensor).starts_with("optimizer.");
  return optimizer && (weights_only_ || (joined_ && tensor < model_.store().tensor_count()));
}

std::vector<std::string> ReshardSource::roots() const {
  std::vector<std::string> out = {model_.store().root()};
  if (!model_.assets_path().empty()) out.push_back(model_.assets_path());
  if (states_) out.push_back(states_->root());
  return out;
}

std::string ReshardSource::identity() const {
  return cat(source_identity(store()), mapping_identity(model_.model()),
             model_.run().tensor_ranks.value_or(0), " ", model_.run().expert_tensor_ranks.value_or(0), " ",
             source_ep_.value_or(0), " ", source_hsdp_.value_or(0));
}

}  // namespace mckpt
