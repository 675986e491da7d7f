#include "tools/checkpoint_model.h"

#include <sys/stat.h>

#include "convert/compare/tied_copy.h"
#include "convert/layers/model_layers.h"
#include "convert/views/state_dict_pieces.h"
#include "convert/views/torch_dist_pieces.h"
#include "hf/assets.h"
#include "io/dcp/run_args.h"
#include "io/store/store_files.h"
#include "tools/render/findings.h"

namespace mckpt {
namespace {

// The rows of the vocabulary with padding, as the checkpoint has them; 0 where they are not of this model,
// whose shapes are compared later.
i64 stored_vocab_rows(const ModelMap& map, const NameMap<std::string, i64>& tensors, const Store& store) {
  for (const ModelParameter& p : map.parameters(Grid{}, Cell{}, {})) {
    if (p.row->rule != "vocab") continue;
    auto at = tensors.find(p.global_name);
    if (at == tensors.end() || store.dims(at->second).empty()) continue;
    i64 rows = store.dims(at->second)[0];
    return rows >= map.model().vocab ? rows : 0;
  }
  return 0;
}

void refuse_other_formats(const Store& store) {
  if (store.format().starts_with("DCP")) return;
  Error e(Code::kUnknownFormat, "this is not a sharded checkpoint");
  if (store.format().starts_with("safetensors"))
    e.help("mckpt convert hf-to-fsdp makes one of a Hugging Face model");
  throw e.file(store.root())
      .expected("a torch DCP folder with the keys of fsdp_dtensor, of torch_dist, or of FSDP alone")
      .found(store.format());
}

// Whether its names alone tell layers, experts and parameters apart.
bool tells_parameters(DcpDialect dialect) {
  return dialect != DcpDialect::kPlain && dialect != DcpDialect::kTorchDist;
}

// The parameters that a checkpoint of an unknown model has: not buffers that count or index, nor what has no
// rows to be cut into.
std::optional<std::string> plain_parameter(const Store& store, DcpDialect dialect, i64 tensor) {
  DcpKey key = split_key(dialect, store.name(tensor));
  bool shardable = is_castable(store.dtype(tensor)) && !store.dims(tensor).empty() &&
                   store.shape(tensor).items() > 0 && key.parameter.find_first_of("{}") == key.parameter.npos;
  bool model =
      shardable && key.section == DcpKey::Section::kModel && !key.parameter.ends_with("_extra_state");
  return model ? model_key(cat("model.", key.parameter)) : std::nullopt;
}

// What the checkpoint has beyond the vocabulary is taken for padding; here it says itself that it is not.
void refuse_fewer_rows(const Store& store, const HfModel& model) {
  std::string own = own_assets(store);
  if (own.empty()) return;
  i64 rows = 0, found = model.map->model().vocab;
  try {
    rows = hf_config_of(own).model.vocab;
  } catch (const Error&) {
    return;  // --assets is there because these are of no use
  }
  if (found >= rows) return;
  throw Error(
      Code::kContradiction,
      "the config of --assets has a smaller vocabulary than the model that the checkpoint was made of")
      .file(cat(model.path, "/config.json"))
      .expected(cat("vocab_size ", rows, ", as in ", escaped(own, 4096), "/config.json"))
      .found(cat("vocab_size ", found, ": the last ", rows - found, " rows would be lost"))
      .help("give the assets of that model, or leave out --assets");
}

HfModel model_of(const Store& store, const CheckpointModelFlags& flags) {
  DcpDialect dialect = dcp_dialect(store).value_or(DcpDialect::kPlain);
  if (flags.any_model && !flags.assets) {
    if (!tells_parameters(dialect))
      throw Error(Code::kUnknownAssets,
                  "nothing in the checkpoint tells layers, experts and parameters apart")
          .file(store.root())
          .found(store.format())
          .help("--assets HF_DIR   a folder with the config.json of its model");
    return plain_model(store, [&](i64 t) { return plain_parameter(store, dialect, t); });
  }
  std::string assets = flags.assets ? *flags.assets : own_assets(store);
  if (assets.empty()) {
    Error e(Code::kUnknownAssets, "the checkpoint does not say of which Hugging Face model it is");
    if (std::string keys = dialect == DcpDialect::kPlain ? keys_of_no_format(store) : ""; !keys.empty())
      e.found(cat("tensors that no known format has: ", keys));
    throw e.file(store.root())
        .help(
            cat("--assets HF_DIR   the folder of the original model, or one with its config.json",
                flags.renamed && dialect != DcpDialect::kTorchDist ? "; --any-model does without one" : ""));
  }
  HfModelFlags how = flags.model;
  if (flags.assets) how.kept_map = kept_map(store);
  HfModel model = open_hf_model(assets, how);
  if (flags.assets) refuse_fewer_rows(store, model);
  return model;
}

// The rows of fused queries, keys and values are the same for other heads and groups, in another order.
void refuse_other_heads(const Store& store, const ModelConfig& model) {
  std::shared_ptr<const PickleValue> args;
  try {
    args = args_of(store);
  } catch (const Error&) {
  }
  if (!args || model.mla.kv_lora > 0) return;
  auto compare = [&](std::string_view name, i64 here) {
    const PickleValue* said = arg_of(*args, name);
    if (!said || !said->is_int() || here == 0 || said->as_int() == here) return;
    throw Error(Code::kContradiction, "the config of the model contradicts the args of the checkpoint")
        .file(store.root())
        .expected(cat(name, " ", said->as_int()))
        .found(cat(name, " ", here))
        .help("--assets HF_DIR names the model that the checkpoint is of");
  };
  compare("num_attention_heads", model.text.heads);
  // Without grouped queries the number of groups means nothing.
  const PickleValue* grouped = arg_of(*args, "group_query_attention");
  if (grouped && grouped->is(PickleValue::Kind::kBool) && grouped->as_bool())
    compare("num_query_groups", model.text.kv_groups);
}

}  // namespace

void CheckpointModelFlags::declare(CommandLine& line) {
  line.option(
      "--assets HF_DIR", assets,
      "folder of the original model, or with its config.json: gives names, packing, data types, tokenizer");
  line.option("--source-tp N", source_tp,
              "tensor-parallel ranks that wrote the checkpoint, if the checkpoint does not say it");
  line.option("--source-etp N", source_etp,
              "expert-tensor-parallel ranks that wrote it, if the checkpoint does not say it");
  declare_accept(line, accept);
  model.declare(line);
}

void declare_accept(CommandLine& line, std::vector<std::string>& codes) {
  line.option("--accept CODE", codes,
              "convert despite this problem (repeatable): MC1311 missing half or state, MC1312 missing "
              "layers or experts, MC1313 lost pipeline stages, MC1315 files of two saves");
}

void refuse_damage(const Store& store, NamesOf parts, std::span<const std::string> accepted,
                   const GlobalFlags& global, bool (*except)(const Finding&)) {
  std::vector<Finding> findings = store.findings();
  if (except) std::erase_if(findings, except);
  for (Finding& f : dcp_damage(store, parts)) findings.push_back(std::move(f));
  accept(findings, accepted);
  require_sound(global, findings, store.root());
}

std::string own_assets(const Store& store) {
  std::string path = Folder(store.root()).inside(kAssetsFolder);
  struct stat st;
  return ::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode) ? path : "";
}

std::string keys_of_no_format(const Store& store) {
  std::string first;
  i64 more = -1;
  for (i64 t = 0; t < store.tensor_count(); t++) {
    std::string_view name = store.name(t);
    if (name.starts_with("model.") || name.starts_with("optimizer.state.")) continue;
    if (more++ < 0) first = escaped(name);
  }
  return more < 0 ? "" : cat(first, more > 0 ? cat(" and ", more, " more") : "");
}

std::string kept_map(const Store& store) {
  std::string assets = own_assets(store);
  if (assets.empty()) return "";
  std::string text = tensor_table_text(Folder(assets));
  if (text.empty()) return "";
  return with_file(cat(assets, "/", kTensorTableName), [&] { return parse_tensor_table(text).map_text; });
}

std::optional<i64> agreed_ranks(const Store& store, std::optional<i64> stored, const char* option,
                                std::optional<i64> said) {
  if (stored && said && *stored != *said)
    throw Error(Code::kContradiction, cat(option, " contradicts what the checkpoint says of its run"))
        .file(store.root())
        .expected(*stored)
        .found(cat(option, " ", *said))
        .help(cat("leave ", option, " out: it is for checkpoints that do not say it"));
  return stored ? stored : said;
}

std::string source_identity(const Store& store) {
  std::string out;
  // A resumed run judges what was read before by the sums of the source; safetensors have none.
  bool has_sums = !store.format().starts_with("safetensors");
  StoreFiles files(store);
  for (std::size_t f = 0; f < store.files().size(); f++) {
    const FileStamp& stamp = files.open(static_cast<i32>(f))->stamp();
    out += cat(store.files()[f].path, " ", stamp.bytes, " ", stamp.modified_ns, "\n");
    if (!has_sums) out += cat(stamp.changed_ns, "\n");
  }
  return out;
}

void CheckpointModel::open(const std::string& path, const CheckpointModelFlags& flags,
                           const GlobalFlags& global) {
  open(open_store(path), flags, global);
}

void CheckpointModel::open(std::unique_ptr<Store> store, const CheckpointModelFlags& flags,
                           const GlobalFlags& global) {
  refuse_other_formats(*store);
  HfModel model = model_of(*store, flags);
  bool of_another_form = flags.keep_layers && !model.plain &&
                         dcp_dialect(*store) == DcpDialect::kFsdpDtensor &&
                         layers_as_in_model(*store, *model.map, flags.weights_only());
  if (of_another_form) {
    CheckpointModelFlags unknown = flags;
    unknown.any_model = true, unknown.assets.reset();
    model = model_of(*store, unknown);
  }
  open(std::move(store), std::move(model), flags, global, {0, std::nullopt});
}

// torch_dist has the parts of fused tensors apart, or one after the other as a single rank has them.
void CheckpointModel::translate(DcpDialect dialect, const CheckpointModelFlags& flags, const RunSetup& setup,
                                KeyTable::Cells& cells) {
  std::unique_ptr<PieceStore> pieces;
  bool named = dialect == DcpDialect::kStateDict || dialect == DcpDialect::kMegatronFsdp;
  if (dialect == DcpDialect::kTorchDist) {
    pieces = torch_dist_pieces(std::move(store_), map(), setup, flags.weights_only());
    cells = {1, 1};
  } else if (named && flags.renamed) {
    pieces = state_dict_pieces(std::move(store_), dialect, model_.plain ? nullptr : &map(), setup, cells,
                               flags.weights_only());
  } else if (dialect == DcpDialect::kFsdpDtensor && !model_.plain && !setup.groups) {
    if (std::optional<LayerMigration> moved = layers_as_in_model(*store_, map(), flags.weights_only()))
      pieces = migrated(std::move(store_), *moved);
  }
  if (!pieces) return;
  pieces_ = pieces.get();
  store_ = std::move(pieces);
}

void CheckpointModel::open(std::unique_ptr<Store> store, HfModel model, const CheckpointModelFlags& flags,
                           const GlobalFlags& global, RunSetup setup) {
  store_ = std::move(store);
  model_ = std::move(model);
  refuse_other_formats(*store_);
  refuse_damage(*store_, flags.parts, flags.accept, global, flags.records_apart ? is_of_records : nullptr);
  if (!model_.plain) refuse_other_heads(*store_, map().model());
  run_ = dcp_run_facts(*store_);
  run_.tensor_ranks = agreed_ranks(*store_, run_.tensor_ranks, flags.tp_option, flags.source_tp);
  run_.expert_tensor_ranks =
      agreed_ranks(*store_, run_.expert_tensor_ranks, flags.etp_option, flags.source_etp);
  KeyTable::Cells cells{run_.tensor_ranks.value_or(0), run_.expert_tensor_ranks.value_or(0)};
  with_file(store_->root(),
            [&] { translate(dcp_dialect(*store_).value_or(DcpDialect::kPlain), flags, setup, cells); });
  for (i64 t = 0; t < store_->tensor_count(); t++)
    if (std::optional<std::string> name = model_key(store_->name(t))) tensors_.emplace(std::move(*name), t);
  setup.vocab_rows = stored_vocab_rows(map(), tensors_, *store_);
  setup_ = setup;
  keys_ = with_file(store_->root(), [&] {
    return std::make_unique<KeyTable>(map(), setup, cells,
                                      [&](const std::string& name) { return tensors_.contains(name); });
  });
  chunks_ = std::make_unique<StoredChunks>(*store_, *keys_);
  check_tied_copies(*store_, chunks_->copies());
}

i32 CheckpointModel::tensor_of_key(const std::string& key) const {
  auto at = tensors_.find(key);
  return at == tensors_.end() ? -1 : static_cast<i32>(at->second);
}

std::vector<DType> CheckpointModel::original_types() const {
  const SourceTable& tensors = map().sources();
  std::vector<std::optional<DType>> stored = stored_types();
  std::vector<bool> buffer(stored.size());
  for (const ModelParameter& p : keys_->parameters())
    for (i32 source : p.sources)
      if (source >= 0 && p.buffer()) buffer[static_cast<std::size_t>(source)] = true;
  std::vector<DType> out;
  for (i32 t = 0; t < tensors.size(); t++) {
    std::size_t i = static_cast<std::size_t>(t);
    DType own = stored[i].value_or(tensors[t].dtype);
    DType promised = buffer[i] ? own : map().model().dtype.value_or(own);
    out.push_back(tensors[t].header_known ? tensors[t].dtype : promised);
  }
  return out;
}

}  // namespace mckpt
