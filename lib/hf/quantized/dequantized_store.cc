// The view: numbers of tensors are mapped to the source's numbers, and quantised ones get computed bytes.
#include "hf/quantized/dequantized_store.h"

#include <algorithm>
#include <map>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "core/quantized/dequantize.h"
#include "hf/quantized/value_bytes.h"
#include "hf/quantized/value_faults.h"
#include "io/file/folder.h"
#include "mappings/model/accounting.h"

namespace mckpt::impl {

DequantizedStore::DequantizedStore(std::unique_ptr<Store> source, QuantizedModel model, DType dtype,
                                   BadNumbers bad)
    : StoreView(std::move(source)), model_(std::move(model)), dtype_(dtype) {
  if (!is_dequantized_type(dtype))
    throw Error(Code::kBadCast, "quantised weights are not decoded to this type")
        .expected("bfloat16, float16 or float32")
        .found(dtype_name(dtype));
  take_objects();
  take_findings();
  findings_.insert(findings_.end(), model_.findings.begin(), model_.findings.end());
  std::vector<i64> made(static_cast<std::size_t>(StoreView::source().tensor_count()), -1);
  for (std::size_t q = 0; q < model_.tensors.size(); q++) made[model_.tensors[q].codes] = static_cast<i64>(q);
  for (i64 t = 0; t < std::ssize(made); t++)
    if (!std::ranges::binary_search(model_.beside, t)) tensors_.push_back({t, made[t]});
  memory_ = std::make_unique<ValueMemory>(StoreView::source());
  faults_ = std::make_unique<ValueFaults>(StoreView::source(), model_, bad);
}

DequantizedStore::~DequantizedStore() = default;

const QuantizedTensor* DequantizedStore::quantized(i64 t) const {
  return at(t).quantized < 0 ? nullptr : &model_.tensors[at(t).quantized];
}

std::vector<std::string> DequantizedStore::activation_scales() const {
  std::vector<std::string> out;
  for (i64 t : model_.of_activations)
    if (!has(t)) out.emplace_back(source().name(t));
  return out;
}

void DequantizedStore::take_activation_scales(const std::function<bool(std::string_view)>& chosen) {
  std::vector<Tensor> taken;
  for (i64 t : model_.of_activations)
    if (!has(t) && chosen(source().name(t))) taken.push_back({t, -1});
  tensors_.insert(tensors_.end(), taken.begin(), taken.end());
  std::ranges::sort(tensors_, {}, &Tensor::source);
}

std::string_view DequantizedStore::name(i64 t) const {
  const QuantizedTensor* q = quantized(t);
  return q ? std::string_view(q->name) : source().name(at(t).source);
}

DType DequantizedStore::dtype(i64 t) const { return quantized(t) ? dtype_ : source().dtype(at(t).source); }

std::span<const i64> DequantizedStore::dims(i64 t) const {
  const QuantizedTensor* q = quantized(t);
  return q ? std::span<const i64>(q->dims) : source().dims(at(t).source);
}

i64 DequantizedStore::chunk_count(i64 t) const {
  return quantized(t) ? 1 : source().chunk_count(at(t).source);
}

Chunk DequantizedStore::chunk(i64 t, i64 index) const {
  Chunk out = source().chunk(at(t).source, index);
  if (const QuantizedTensor* q = quantized(t))
    out.offsets = zero_offsets(q->dims.size()), out.sizes = q->dims;
  return out;
}

ChunkData DequantizedStore::resolve(i64 t, i64 index) const {
  const QuantizedTensor* q = quantized(t);
  if (!q) {
    ChunkData out = source().resolve(at(t).source, index);
    if (out.checksum) out.checksum->tensor = t;
    return out;
  }
  ChunkData out{.file = source().chunk(at(t).source, 0).file,
                .offset = 0,
                .dtype = dtype_,
                .unpacked = value_bytes(source(), *q, dtype_, *memory_, *faults_)};
  for (i64 part : {q->codes, q->scales, q->zero_points, q->tensor_scale, q->shape, q->groups})
    if (part >= 0) add_sums(source(), part, out.beneath);
  for (Checksum& sum : out.beneath) sum.tensor = t;
  return out;
}

// The sums of codes and scales still belong to the files; they belong to no tensor of the view.
void DequantizedStore::each_checksum(const std::function<void(const Checksum&)>& visit) const {
  std::vector<i64> number(static_cast<std::size_t>(source().tensor_count()), -1);
  for (i64 t = 0; t < tensor_count(); t++) number[at(t).source] = t;
  source().each_checksum([&](const Checksum& sum) {
    Checksum own = sum;
    if (own.tensor >= 0) own.tensor = number[own.tensor];
    visit(own);
  });
}

std::unique_ptr<Store> dequantized(std::unique_ptr<Store> store, const QuantDeclaration& declared,
                                   std::optional<DType> dtype, BadNumbers bad) {
  QuantizedModel model = recognise(*store, declared);
  if (model.empty()) return store;
  return std::make_unique<DequantizedStore>(std::move(store), std::move(model),
                                            dtype.value_or(declared.dtype), bad);
}

namespace {

// The folder that has the config of the store: its root, or the folder of its file.
std::string config_folder(const Store& store) {
  if (is_folder(store.root(), store.opening())) return store.root();
  std::size_t slash = store.root().rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : store.root().substr(0, slash);
}

}  // namespace

QuantDeclaration quant_declaration_of(const Store& store) {
  return read_quant_declaration(Folder(config_folder(store), store.opening()));
}

std::unique_ptr<Store> dequantized(std::unique_ptr<Store> store, std::optional<DType> dtype, BadNumbers bad) {
  if (format_family(store->format()) != FormatFamily::kSafetensors) return store;
  QuantDeclaration declared;
  try {
    declared = quant_declaration_of(*store);
  } catch (const Error&) {
    return store;
  }
  return dequantized(std::move(store), declared, dtype, bad);
}

std::unique_ptr<Store> open_values(const std::string& path, const OpenOptions& opening) {
  return dequantized(open_store(path, opening));
}

// Schemes by how many modules have them. A module is a matrix, or a stack of them.
std::string quantized_text(const Store& source, const QuantizedModel& model) {
  if (model.tensors.empty())
    return cat(counted(std::ssize(model.of_activations), "scale"), " of activations or caches alone");
  std::map<std::string, i64> schemes;
  for (const QuantizedTensor& q : model.tensors) schemes[scheme_text(q.layout)]++;
  std::vector<bool> codes(static_cast<std::size_t>(source.tensor_count()));
  for (const QuantizedTensor& q : model.tensors) codes[q.codes] = true;
  i64 modules = std::ssize(model.tensors);
  for (i64 t = 0; t < source.tensor_count(); t++) {
    bool matrix = source.dims(t).size() >= 2 && dtype_info(source.dtype(t)).kind == DTypeKind::kFloat;
    bool beside = codes[t] || std::ranges::binary_search(model.beside, t) || source.name(t).ends_with("bias");
    modules += matrix && !beside;
  }
  std::vector<std::pair<i64, std::string>> order;
  for (const auto& [text, count] : schemes) order.emplace_back(-count, text);
  std::ranges::sort(order);
  std::string out;
  for (const auto& [count, text] : order) out += cat(out.empty() ? "" : " and ", text);
  return cat(out, ", ", with_commas(std::ssize(model.tensors)), " of ", counted(modules, "module"));
}

std::optional<Error> undecoded_codes(const Store& store) {
  if (dequantized_view(store) || format_family(store.format()) != FormatFamily::kSafetensors)
    return std::nullopt;
  try {
    quant_declaration_of(store);
  } catch (const Error& e) {
    if (e.code() == Code::kQuantized) return e;
  }
  for (i64 t = 0; t < store.tensor_count(); t++)
    if (is_name_of_codes(store.name(t))) return quantized_error(store.name(t));
  return std::nullopt;
}

namespace {

// The bits of packed integers if they are the same in all tensors, else 0.
i64 packed_bits_of(const QuantizedModel& model) {
  i64 bits = 0;
  for (const QuantizedTensor& q : model.tensors) {
    if (q.layout.codes != CodeFormat::kPackedInt) continue;
    if (bits != 0 && bits != q.layout.int_bits) return 0;
    bits = q.layout.int_bits;
  }
  return bits;
}

// The quantised tensors of a store of safetensors. A config that says nothing usable leaves all out; `verify`
// reports it.
QuantizedModel recognised(const Store& store) {
  if (format_family(store.format()) != FormatFamily::kSafetensors) return {};
  try {
    return recognise(store, quant_declaration_of(store));
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted) throw;
    return {};
  }
}

}  // namespace

PackedParameters add_quantized_facts(Store& store) {
  const QuantizedModel model = recognised(store);
  if (!model.tensors.empty()) store.add_fact("quantized modules", quantized_text(store, model));
  // A config that has a preset, or a number in a string, says it in other words.
  constexpr const char* kBits = "packed bits";
  const auto& facts = store.facts();
  const bool known = std::ranges::any_of(facts, [&](const auto& fact) { return fact.first == kBits; });
  if (const i64 bits = packed_bits_of(model); bits > 0 && !known) store.add_fact(kBits, cat(bits));
  PackedParameters out;
  for (const QuantizedTensor& q : model.tensors) out.emplace(store.name(q.codes), Shape(q.dims).items());
  for (i64 t : model.beside) out.emplace(store.name(t), std::nullopt);
  return out;
}

const DequantizedStore* dequantized_view(const Store& store) {
  return dynamic_cast<const DequantizedStore*>(&store);
}

DequantizedStore* dequantized_view(Store& store) { return dynamic_cast<DequantizedStore*>(&store); }

}  // namespace mckpt::impl
