// Opens a checkpoint with its model, in this order:
//
//   1 refuse what is not a sharded checkpoint, or damaged     3 translate the names to those of fsdp_dtensor
//   2 agree on how many ranks wrote it                        4 lay out the key table and the stored chunks
//
// Headers are read, and data only where a decision needs them: an output layer beside a tied embedding is
// compared with it bit by bit.
#include "convert/open/checkpoint.h"

#include <algorithm>

#include "convert/dialects/state_dict/usual_names.h"
#include "convert/dialects/state_dict/whole_parameters.h"
#include "convert/facts/run_facts.h"
#include "convert/keys/stored_chunks.h"
#include "convert/layers/layer_migration.h"
#include "convert/layers/model_layers.h"
#include "convert/open/damage.h"
#include "convert/open/openers.h"
#include "convert/open/options.h"
#include "convert/open/other_model.h"
#include "convert/open/shard_facts.h"
#include "convert/open/source_model.h"
#include "convert/open/translation.h"
#include "convert/views/piece_store.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/fsdp/grid.h"
#include "core/hybrid/pattern.h"
#include "hf/folder/tied_names.h"
#include "hf/model.h"
#include "hf/quantized/recognise.h"
#include "io/dcp/dcp.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/run/args.h"
#include "io/file/parallel.h"
#include "io/store/lone_shard.h"
#include "io/store/soundness.h"
#include "io/store/store.h"
#include "io/values/same_bytes.h"
#include "mappings/config.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"
#include "mappings/model/respelling.h"
#include "mappings/model/source_table.h"

namespace mckpt::impl {
namespace {

// The rows of the vocabulary with padding, as the checkpoint has them; 0 if they are not of this model, whose
// shapes are compared later.
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

// The names of a torch_dist stay where another one is made of it.
bool has_usual_names(KeyNames names, const Store& on_disk) {
  if (names == KeyNames::kUsual) return dcp_dialect(on_disk) != DcpDialect::kTorchDist;
  return names == KeyNames::kToCompare;
}

bool is_of_ranks(const Store& store) { return store.driver().ranks_apart; }

void refuse_other_formats(const Store& store) {
  if (format_family(store.format()) == FormatFamily::kDcp || is_of_ranks(store)) return;
  Error e(Code::kUnknownFormat, "this is not a sharded checkpoint");
  if (format_family(store.format()) == FormatFamily::kSafetensors)
    e.help(
        has_codes(store)
            ? "mckpt convert dequantize makes a Hugging Face folder of the values of these quantised weights; mckpt convert hf-to-fsdp a sharded checkpoint of the model"
            : "mckpt convert hf-to-fsdp makes a sharded checkpoint of a Hugging Face model");
  else if (shard_facts(store))
    e.help(cat("this is the file of one rank: ", kNameAllRanks));
  else if (has_own_names(store))
    e.help("mckpt convert to-fsdp makes one of a checkpoint with the model's own names");
  throw e.file(store.root())
      .expected(
          "a torch DCP folder with the keys of fsdp_dtensor, of torch_dist, or of FSDP alone, or a folder of mp_rank_*")
      .found(format_text(store.format()));
}

RunSizes facts_of(const Store& store) {
  if (!is_of_ranks(store)) return dcp_run_sizes(store);
  std::shared_ptr<const PickleValue> args = args_of(store);
  return args ? run_sizes(*args) : RunSizes{};
}

// A model whose output layer is the embedding may be stored with both tensors: Megatron-FSDP v2 and torch's
// FSDP2 write the weights under either name. `copies`: output layers beside which the embedding is stored.
// `folder`: of the config that ties them, which may be another side's, or "".
void refuse_unlike_copies(const Store& store, std::span<const i32> copies, const std::string& folder) {
  std::vector<std::pair<i64, i64>> pairs;
  for (i32 output : copies) pairs.emplace_back(output, tied_embedding(store, output));
  std::vector<bool> same = have_same_bytes(store, pairs, default_threads());
  std::vector<std::string> unlike;
  for (std::size_t i = 0; i < pairs.size(); i++)
    if (!same[i]) unlike.push_back(unlike_tie(store.name(pairs[i].first), store.name(pairs[i].second)));
  if (!unlike.empty()) throw unlike_ties(unlike, folder).file(store.root());
}

}  // namespace

std::optional<i64> agreed_ranks(const Store& store, std::optional<i64> stored, const char* setting,
                                std::optional<i64> given) {
  if (stored && given && *stored != *given)
    throw Error(Code::kContradiction,
                cat("`", setting, "` contradicts what the checkpoint says of its training run"))
        .file(store.root())
        .expected(*stored)
        .found(cat("`", setting, "` ", *given))
        .help(cat("leave `", setting, "` out: it is for checkpoints that do not say this number"));
  return stored ? stored : given;
}

CheckpointModel open_checkpoint(std::unique_ptr<Store> store, const CheckpointOptions& options) {
  refuse_other_formats(*store);
  refuse_lone_shards(*store, "converted");
  HfModel model = model_of(*store, options);
  std::shared_ptr<const LayerPattern> members;
  const std::optional<DcpDialect> dialect = dcp_dialect(*store);
  const bool fsdp = dialect == DcpDialect::kFsdpDtensor;
  if (keeps_groups(options.names) && !model.plain && (fsdp || dialect == DcpDialect::kTorchDist))
    members = pattern_of_groups(*store, *dialect, *model.map);
  const bool of_another_form = keeps_layers(options.names) && !model.plain && fsdp && !members &&
                               layers_as_in_model(*store, *model.map, nullptr, options.weights_only());
  if (of_another_form) {
    CheckpointOptions unknown = options;
    unknown.any_model = true, unknown.assets.reset();
    model = model_of(*store, unknown);
  }
  RunSetup setup{0, std::nullopt, members.get()};
  return {std::move(store), std::make_shared<const HfModel>(std::move(model)), options, setup,
          std::move(members)};
}

CheckpointModel::CheckpointModel(std::unique_ptr<Store> store, std::shared_ptr<const HfModel> model,
                                 const CheckpointOptions& options, RunSetup setup,
                                 std::shared_ptr<const LayerPattern> members)
    : store_(std::move(store)),
      disk_(store_.get()),
      model_(std::move(model)),
      members_(std::move(members)),
      setup_(setup) {
  refuse_other_formats(*store_);
  oddities_ = refuse_damage(*store_, options.parts(), options.accept,
                            options.records_apart ? is_of_records : nullptr);
  if (!model_->plain)
    for (Finding& unlike : refuse_other_model(*store_, *model_, options.accept))
      oddities_.push_back(std::move(unlike));
  find_groups(options.names);
  run_ = facts_of(*store_);
  run_.tensor_ranks = agreed_ranks(*store_, run_.tensor_ranks, options.tp_setting, options.source_tp);
  run_.expert_tensor_ranks =
      agreed_ranks(*store_, run_.expert_tensor_ranks, options.etp_setting, options.source_etp);
  with_file(std::string(store_->root()), [&] {
    // Nothing that saves a plain state dict divides tensors among tensor-parallel ranks without saying so.
    i64 unsaid = dcp_dialect(*store_) == DcpDialect::kStateDict ? 1 : 0;
    KeyTable::Cells cells{run_.tensor_ranks.value_or(unsaid), run_.expert_tensor_ranks.value_or(unsaid)};
    translate(options, cells);
    of_other_form_ = translated();
    find_spelling();
    respell(options);
    if (makes_whole(options.names) && !model_->plain) make_whole(options.weights_only());
    lay_out(cells);
  });
  chunks_ = std::make_unique<StoredChunks>(*store_, *keys_);
  refuse_unlike_copies(*store_, chunks_->copies(), model_->path);
}

// A state dict says its groups by names alone. To be compared, it gets the names that layers have without
// groups.
void CheckpointModel::find_groups(KeyNames names) {
  const DcpDialect dialect = dcp_dialect(*store_).value_or(DcpDialect::kPlain);
  const bool named = dialect == DcpDialect::kStateDict || dialect == DcpDialect::kMegatronFsdp;
  if (model_->plain || members_ || setup_.groups || !named || store_->driver().ranks_apart) return;
  members_ = pattern_of_groups(*store_, dialect, map());
  if (names != KeyNames::kToCompare) setup_.groups = members_.get();
}

// Replaces the store by a view with the names of fsdp_dtensor, if its names are others.
void CheckpointModel::translate(const CheckpointOptions& options, KeyTable::Cells& cells) {
  if (gets_names_of_fsdp(*store_, options.names)) find_spelling();
  Translation made = impl::translated(store_, *model_, setup_, run_, cells, options, members_.get());
  if (!made.store) return;
  cells = made.cells;
  left_states_ = std::move(made.left_states);
  oddities_.insert(oddities_.end(), made.oddities.begin(), made.oddities.end());
  facts_ = std::move(made.facts);
  store_ = std::move(made.store);
}

// Names change: the parts of a fused parameter have a key each.
void CheckpointModel::make_whole(bool weights_only) {
  WholeParameters whole = whole_parameters(std::move(store_), map(), setup_, weights_only);
  made_whole_ = std::move(whole.made_whole);
  store_ = std::move(whole.store);
  list_tensors();
}

void CheckpointModel::list_tensors() {
  tensors_.clear();
  for (i64 t = 0; t < store_->tensor_count(); t++)
    if (std::optional<std::string> name = model_key(store_->name(t))) tensors_.emplace(std::move(*name), t);
}

// Models that no table knows have the names of the checkpoint.
void CheckpointModel::find_spelling() {
  list_tensors();
  if (model_->plain) return;
  setup_.spelling =
      stored_spelling(map(), setup_, [&](const std::string& name) { return tensors_.contains(name); });
  spelling_on_disk_.rows |= setup_.spelling.rows;
}

// Where no name changes, the store stays.
void CheckpointModel::respell(const CheckpointOptions& options) {
  if (!options.spelling && !has_usual_names(options.names, *disk_)) return;
  const Spelling wanted = options.spelling.value_or(Spelling{}), on_disk = spelling_on_disk_;
  if (options.spelling && model_->plain)
    throw Error(Code::kUnknownFormat,
                "no table has the names of this checkpoint, so they keep their spelling")
        .help("leave `spelling` out");
  if (!options.spelling && setup_.spelling.usual()) return;
  if (options.spelling) refuse_without_effect(wanted, map(), setup_);
  store_ = with_spelling(std::move(store_), map(), setup_, wanted, facts_.get());
  find_spelling();
  spelling_on_disk_ = on_disk;
}

void CheckpointModel::lay_out(KeyTable::Cells cells) {
  setup_.vocab_rows = stored_vocab_rows(map(), tensors_, *store_);
  keys_ = std::make_unique<KeyTable>(
      map(), setup_, cells, [&](const std::string& name) { return tensors_.contains(name); },
      [&](const std::string& name) { return made_whole_.contains(name); });
}

CheckpointModel::CheckpointModel(CheckpointModel&&) noexcept = default;
CheckpointModel::~CheckpointModel() = default;

RunFacts CheckpointModel::facts() const { return facts_ ? *facts_ : facts_of_objects(*store_); }

const ModelMap& CheckpointModel::map() const { return *model_->map; }
const std::string& CheckpointModel::assets_path() const { return model_->path; }
std::vector<std::optional<DType>> CheckpointModel::stored_types() const {
  return chunks_->types_of_sources();
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
      if (source >= 0 && p.buffer()) buffer[source] = true;
  std::vector<DType> out;
  for (i32 t = 0; t < tensors.size(); t++) {
    std::size_t i = static_cast<std::size_t>(t);
    DType own = stored[i].value_or(tensors[t].dtype);
    DType promised = buffer[i] ? own : map().model().dtype.value_or(own);
    out.push_back(tensors[t].header_known ? tensors[t].dtype : promised);
  }
  return out;
}

}  // namespace mckpt::impl
