// A form is found by trying: every key is looked up in the names of the form, and the layers with a key are
// marked. Two forms can be seen in the names alone, which saves trying the others and makes better messages:
//
//   decoder.layers.0.layers.1.x   member        decoder.layers.x   stacked
#include "convert/layers/layer_forms.h"
#include "core/base/error.h"
#include "core/hybrid/pattern.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/keys/key.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr std::size_t kMostNotes = 200;

// The form of the name: "decoder.layers.0.layers.1.x" (member), "decoder.layers.x" (stack), or anything else.
enum class LayerShape { kMember, kStack, kOther };
LayerShape layer_shape(std::string_view name) {
  auto numbered_layer = numbered(name, "decoder.layers.");
  if (name.starts_with("decoder.layers.") && (!numbered_layer || numbered_layer->before != "decoder.layers."))
    return LayerShape::kStack;
  bool member = numbered_layer && numbered_layer->before == "decoder.layers." &&
                numbered_layer->after.starts_with(".layers.");
  return member ? LayerShape::kMember : LayerShape::kOther;
}

// Looks the name up in the form. Marks the layers to which it belongs, or sets the fault.
void mark(const LayerNames& names, std::string_view name, std::span<const i64> dims, std::vector<bool>& seen,
          std::optional<NameFault>& fault) {
  LayerName found = names.find(name, fault);
  if (found.kind == LayerName::Kind::kStack && !fault) {
    if (dims.empty() || dims[0] != names.layers())
      fault = {Code::kBadPattern, cat("the tensor stacks ", counted(dims.empty() ? 0 : dims[0], "layer"),
                                      ", but the pattern has ", names.layers())};
    for (i64 l = 0; l < names.layers() && !fault; l++) {
      LayerName layer = names.of_stack(found.rest, l, fault);
      if (!fault) seen[layer.layer] = true;
    }
  } else if (found.kind == LayerName::Kind::kLayer && found.depth < 0 && !fault) {
    seen[found.layer] = true;
  }
}

}  // namespace

void throw_faults(const std::vector<KeyFault>& faults, const Store& store, std::string_view help) {
  if (faults.empty()) return;
  std::vector<std::string> lines;
  i64 keys = 0;
  for (const auto& [key, fault] : faults) {
    lines.push_back(cat(code_name(fault.code), " ", escaped(key), key.empty() ? "" : ": ", fault.message));
    keys += !key.empty();
  }
  i64 layers = std::ssize(faults) - keys;
  std::string moved = keys == 1 ? "a key cannot be moved" : cat(keys, " keys cannot be moved");
  std::string bare = layers == 1 ? "a layer has no key" : cat(layers, " layers have no key");
  throw Error(faults[0].fault.code, keys == 0     ? bare
                                    : layers == 0 ? moved
                                                  : cat(moved, ", ", bare))
      .each_note(lines, kMostNotes)
      .file(store.root())
      .help(help);
}

std::vector<KeyFault> misfits(const Store& store, DcpDialect dialect, const LayerNames& names,
                              bool without_mixers) {
  std::vector<KeyFault> faults;
  std::vector<bool> seen(static_cast<std::size_t>(names.pattern().physical_layers()));
  for (i64 t = 0; t < store.tensor_count(); t++) {
    KeySection section = key_section(dialect, store.name(t));
    if (!section.model()) continue;
    std::optional<NameFault> fault;
    mark(names, section.name, store.dims(t), seen, fault);
    if (fault) faults.push_back({std::string(store.name(t)), std::move(*fault)});
  }
  auto is_mixer = [&](std::size_t l) { return names.kind(static_cast<i64>(l)).kind == LayerKind::kMamba; };
  for (std::size_t l = 0; l < seen.size(); l++) without_mixers &= !(seen[l] && is_mixer(l));
  for (std::size_t layer = 0; layer < seen.size(); layer++)
    if (i64 l = static_cast<i64>(layer); names.has(l) && !seen[layer] && !(without_mixers && is_mixer(layer)))
      faults.push_back({"",
                        {Code::kBadPattern, cat("layer ", l, " of the pattern, ", names.kind(l).symbol, " (",
                                                names.kind(l).words, "), has no key")}});
  return faults;
}

LayerForm detect_form(const Store& store, DcpDialect dialect, const LayerPattern& pattern,
                      std::span<const LayerForm> forms, bool without_mixers) {
  // Names of members and of stacks look like no other form.
  bool members = false, stacks = false;
  for (i64 t = 0; t < store.tensor_count(); t++) {
    LayerShape shape = layer_shape(key_section(dialect, store.name(t)).name);
    members |= shape == LayerShape::kMember;
    stacks |= shape == LayerShape::kStack;
  }
  stacks &= std::ranges::find(forms, LayerForm::kStacked) != forms.end();
  std::vector<LayerForm> likely;
  for (LayerForm form : forms)
    if (members ? form == LayerForm::kMember
                : (form == LayerForm::kStacked) == stacks && form != LayerForm::kMember)
      likely.push_back(form);
  if (likely.empty()) likely.assign(forms.begin(), forms.end());
  for (LayerForm form : likely)
    if (misfits(store, dialect, LayerNames(pattern, form), without_mixers).empty()) return form;
  throw_faults(misfits(store, dialect, LayerNames(pattern, likely[0]), without_mixers), store,
               "`pattern` gives the pattern that fits; `mckpt pattern PATTERN` explains one");
  return likely[0];
}

}  // namespace mckpt::impl
