// Reads one tensor from the objects of a pickle. Values that torch would refuse are refused here too, with
// the reason.
#include "io/torch/table/tensor.h"

#include "core/base/error.h"
#include "io/pickle/classes.h"
#include "io/pickle/render.h"
#include "io/torch/table/boxes.h"
#include "io/torch/table/calls.h"
#include "io/torch/table/sharded_tensor.h"

namespace mckpt::impl {
namespace {

using Kind = PickleValue::Kind;

constexpr i64 kParameterArgs = 3;                 // of torch's _rebuild_parameter, at least
constexpr i64 kMostExpandedBytes = i64{1} << 30;  // of a view that repeats its storage

// The two fields of a DTensor.
constexpr std::string_view kLocalTensor = "_local_tensor", kSpec = "_spec";

// Whether the call makes a DTensor; other wrapper subclasses are not tensors to us.
bool is_dtensor(const TorchCall& r) {
  return r.function == Known::kRebuildWrapperSubclass && r.type.is(Kind::kClass) &&
         r.type.as_class().known == Known::kDTensor;
}

// Whether a call of _rebuild_from_type_v2 cannot be: it has more arguments than it takes, or fewer, or no
// class.
bool is_odd_call(const TorchCall& r) {
  const bool is_class = r.type.is(Kind::kClass) || r.type.is(Kind::kObject);
  return r.outer_args >= 0 && (r.outer_args != kFromTypeArgs || !is_class);
}

// The field of a state that is a dict, or a tuple of a dict and something else; None if there is none.
PickleValue state_field(PickleValue state, std::string_view name) {
  if (const PickleValue* v = state.find(name)) return *v;
  for (PickleValue part : state.tuple())
    if (const PickleValue* v = part.find(name)) return *v;
  return {};
}

// Throws kUnsupportedTensor. The metadata may say {'conj': True} or {'neg': True}: then the values differ
// from the storage's. torch looks only at the keys.
void check_no_lazy_values(PickleValue metadata) {
  if (metadata.is_none()) return;
  if (!metadata.is(Kind::kDict))
    throw Error(Code::kBadPickle, "the metadata of a tensor is not a dict").found(kind_name(metadata.kind()));
  for (auto [key, value] : metadata.entries()) {
    bool conj = key.is(Kind::kText) && key.text() == "conj", neg = key.is(Kind::kText) && key.text() == "neg";
    if (!conj && !neg)
      throw Error(Code::kUnsupportedTensor, "a tensor has metadata that mckpt does not know: unsupported")
          .found(pickle_line(key, 60));
    throw Error(Code::kUnsupportedTensor, cat("the file stores not the values of the tensor but their ",
                                              conj ? "conjugate" : "negative", ": unsupported"))
        .help(cat("save it again with tensor.resolve_", conj ? "conj" : "neg", "()"));
  }
}

// Throws kUnsupportedTensor for the types of torch whose sizes and strides count parts of a byte.
void check_whole_bytes(DType dtype) {
  if (dtype != DType::kQU4x2 && dtype != DType::kQU2x4) return;
  throw Error(Code::kUnsupportedTensor,
              cat("this is a tensor of ", dtype_name(dtype), ", which has ",
                  dtype == DType::kQU4x2 ? "two" : "four", " items in a byte: unsupported"))
      .help("save tensor.dequantize() instead");
}

// (storage, offset, sizes, strides, ...), which all of torch's strided tensors begin with.
TorchTensor read_view(const TorchCall& r) {
  if (r.function == Known::kRebuildTensorV2) check_no_lazy_values(r.args.at(6));
  if (r.function == Known::kRebuildTensorV3) check_no_lazy_values(r.args.at(7));
  TorchTensor t;
  t.storage = read_torch_storage(r.args.at(0));
  t.dtype = t.storage.dtype;
  if (r.function == Known::kRebuildTensorV3) {
    PickleValue dtype = r.args.at(6);
    if (!dtype.is(Kind::kClass) || dtype.as_class().known != Known::kDType)
      throw Error(Code::kBadPickle, "the dtype of a tensor is not a dtype of torch")
          .found(pickle_line(dtype, 60));
    t.dtype = dtype.as_class().dtype;
  }
  t.offset_items = r.args.at(1).to_int("the storage offset of a tensor");
  t.shape = Shape(torch_integers(r.args.at(2), "the size of a tensor"));
  t.strides = torch_integers(r.args.at(3), "the stride of a tensor");
  check_gradient(r, t.dtype);
  if (r.function == Known::kRebuildQTensor && dtype_info(t.dtype).kind != DTypeKind::kQuantized)
    throw Error(Code::kBadPickle,
                "a quantized tensor has a data type that is not quantized: torch refuses it")
        .found(dtype_name(t.dtype));
  check_whole_bytes(t.dtype);
  return t;
}

TorchTensor read_dtensor(const TorchCall& r, int depth, TorchMeshes& meshes);

// A parameter is read as the tensor in it. `depth` bounds the wrappings.
TorchTensor read_tensor(PickleValue v, int depth, TorchMeshes& meshes) {
  if (depth == 0) throw Error(Code::kBadPickle, "a tensor is wrapped too often in parameters and types");
  TorchCall r = torch_call(v);
  check_torch_call(r);
  // torch makes the tensor that somebody put there before it looks away.
  if (PickleValue hooks = backward_hooks(r); is_torch_tensor(hooks))
    check_torch_view(read_tensor(hooks, depth - 1, meshes));
  switch (r.function) {
    case Known::kRebuildTensor:
    case Known::kRebuildTensorV2:
    case Known::kRebuildTensorV3:
    case Known::kRebuildQTensor:
      return read_view(r);
    case Known::kRebuildParameter: {
      TorchTensor t = read_tensor(r.args.at(0), depth - 1, meshes);
      check_gradient(r, t.dtype);
      return t;
    }
    case Known::kRebuildWrapperSubclass:
      return read_dtensor(r, depth - 1, meshes);
    default:
      if (std::string_view what = unsupported_tensor(v); !what.empty())
        throw Error(Code::kUnsupportedTensor, cat("this is ", what, ": unsupported"));
      throw Error(Code::kBadPickle, "a tensor is made of something that is not a tensor")
          .found(pickle_line(v, 80));
  }
}

// The local tensor, and the layout of the whole.
TorchTensor read_dtensor(const TorchCall& r, int depth, TorchMeshes& meshes) {
  TorchTensor t = read_tensor(state_field(r.state, kLocalTensor), depth, meshes);
  if (t.sharding) throw Error(Code::kBadPickle, "a DTensor is made of DTensors");
  t.sharding = read_torch_sharding(state_field(r.state, kSpec), meshes);
  t.sharding->global = torch_integers(r.args.at(2), "the size of a DTensor");
  Shape global(t.sharding->global);  // throws when it is none
  // A rank outside of the mesh has an empty tensor of one dimension.
  const TorchMesh& mesh = *t.sharding->mesh;
  if (t.shape.items() == 0 && mesh.rank >= 0 && !mesh_place(mesh, mesh.rank)) {
    t.shape = Shape(std::vector<i64>(static_cast<std::size_t>(global.rank()), 0));
    t.strides.assign(static_cast<std::size_t>(global.rank()), 1);
  }
  if (global.rank() != t.shape.rank())
    throw Error(Code::kBadShape, "a DTensor and the rank's piece of it have different numbers of dimensions")
        .expected(to_string(global))
        .found(to_string(t.shape));
  check_placements(*t.sharding);
  return t;
}

void check_dimensions(const TorchTensor& t) {
  if (t.strides.size() == static_cast<std::size_t>(t.shape.rank())) return;
  throw Error(Code::kBadView, "the size and the stride of a tensor have different lengths")
      .expected(t.shape.rank())
      .found(t.strides.size());
}

// The lists of a CheckpointableTensor: attributes by which a local tensor says which boxes of a larger one it
// has, and where in it.
constexpr std::string_view kBoxFields[] = {"global_shape", "global_offsets", "local_offsets", "local_sizes"};

bool has_boxes(const TorchCall& r) {
  return std::ranges::all_of(kBoxFields, [&](std::string_view name) {
    return state_field(r.state, name).is(Kind::kTuple) || state_field(r.state, name).is(Kind::kList);
  });
}

// A view for each box. Throws kBadShape for boxes that are not in the local tensor.
std::vector<TorchTensor> boxes_of(const TorchCall& r, const TorchTensor& local) {
  auto list = [&](int i) { return state_field(r.state, kBoxFields[i]); };
  TorchSharding sharding = sharding_by_boxes(torch_integers(list(0), "the global shape of a tensor"));
  Shape global(sharding.global);  // throws when it is none
  std::vector<TorchTensor> out;
  for (const TorchBox& box : read_torch_boxes(list(1), list(2), list(3)))
    out.push_back(tensor_of_box(local, sharding, box));
  if (!out.empty()) return out;
  TorchTensor none = local;  // the rank has no box
  none.sharding = sharding;
  none.sharding->offsets.assign(sharding.global.size(), 0);
  none.shape = Shape(std::vector<i64>(sharding.global.size(), 0));
  none.strides.assign(sharding.global.size(), 1);
  none.nothing = true;
  return {std::move(none)};
}

}  // namespace

PickleValue wrapped_tensor(const TorchCall& call) {
  if (call.function == Known::kRebuildParameter) return call.args.at(0);
  return is_dtensor(call) ? state_field(call.state, kLocalTensor) : PickleValue();
}

std::span<const std::string_view> placing_fields(const TorchCall& call) {
  static constexpr std::string_view kOfDTensors[] = {kLocalTensor, kSpec};
  if (is_dtensor(call)) return kOfDTensors;
  return has_boxes(call) ? std::span<const std::string_view>(kBoxFields)
                         : std::span<const std::string_view>();
}

bool is_torch_tensor(PickleValue v) {
  for (int depth = 0; depth < kMostWrappings; depth++) {
    TorchCall r = torch_call(v);
    if (r.function >= Known::kRebuildTensor && r.function <= Known::kRebuildQTensor) return true;
    if (is_dtensor(r) || is_sharded_tensor(r) || is_odd_call(r)) return true;
    if (r.function != Known::kRebuildParameter) return false;
    v = r.args.at(0);
    // Whatever else it is made of, read_torch_tensor() says what is wrong.
    if (!v.is_none() && !v.is(Kind::kObject)) return true;
    if (v.is_none()) return r.args.size() < kParameterArgs;
  }
  return true;  // read_torch_tensor() says what is wrong
}

std::string_view unsupported_tensor(PickleValue v) {
  TorchCall r = torch_call(v);
  if (r.function == Known::kRebuildMeta) return "a tensor on the meta device, which has no data";
  if (r.function == Known::kRebuildOther)
    return "a sparse or nested tensor, or one of a device without storage";
  return "";
}

std::vector<TorchTensor> read_torch_tensors(PickleValue v, TorchMeshes& meshes) {
  if (TorchCall call = torch_call(v); has_boxes(call)) return boxes_of(call, read_torch_tensor(v, meshes));
  if (TorchCall call = torch_call(v); is_sharded_tensor(call)) {
    check_torch_call(call);
    return read_sharded_tensor(call, meshes);
  }
  return {read_torch_tensor(v, meshes)};
}

TorchTensor read_torch_tensor(PickleValue v, TorchMeshes& meshes) {
  TorchTensor t = read_tensor(v, kMostWrappings, meshes);
  check_dimensions(t);
  return t;
}

Shape read_plain_shape(PickleValue v) {
  TorchCall r = torch_call(v);
  if (r.function < Known::kRebuildTensor || r.function > Known::kRebuildQTensor)
    throw Error(Code::kBadPickle, "a plain tensor was expected").found(pickle_line(v, 80));
  check_torch_call(r);
  TorchTensor t = read_view(r);
  check_dimensions(t);
  check_torch_view(t);
  return t.shape;
}

TorchStorage read_torch_storage(PickleValue v) {
  if (!v.is(Kind::kStorage))
    throw Error(Code::kBadPickle, "the storage of a tensor is not a storage").found(kind_name(v.kind()));
  PickleValue id = v.as_object().args, type = id.at(1);
  if (!type.is(Kind::kClass) ||
      (type.as_class().known != Known::kStorage && type.as_class().known != Known::kUntypedStorage))
    throw Error(Code::kBadStorage, "a storage is of a class that mckpt does not know")
        .found(pickle_line(type, 80));
  TorchStorage s;
  s.key = id.at(2).to_text("the key of a storage");
  if (PickleValue device = id.at(3); !device.is_none())
    static_cast<void>(device.to_text("the device of a storage"));
  s.dtype = type.as_class().known == Known::kStorage ? type.as_class().dtype : DType::kU8;
  i64 items = id.at(4).to_int("the size of a storage");
  if (items < 0) throw Error(Code::kBadStorage, "the size of a storage is negative").found(items);
  s.bytes = s.view_bytes = dtype_bytes(s.dtype, items);
  PickleValue view = id.at(5);
  if (view.is_none()) return s;
  // Files before torch 0.4 may name a view of a storage: (its own key, offset, count).
  i64 begin = view.at(1).to_int("the offset of a storage view"),
      count = view.at(2).to_int("the size of a storage view");
  if (begin < 0 || count < 0 || begin > items || count > items - begin)
    throw Error(Code::kBadStorage, "a storage view is out of the bounds of its storage")
        .expected(cat("at most ", items, " elements"))
        .found(cat(begin, " + ", count));
  s.view_begin_bytes = dtype_bytes(s.dtype, begin);
  s.view_bytes = dtype_bytes(s.dtype, count);
  return s;
}

void check_one_size(const TorchStorage& storage, i64 seen_bytes) {
  if (storage.bytes == seen_bytes) return;
  throw Error(Code::kBadStorage,
              cat("the pickle gives the storage '", escaped(storage.key), "' two sizes (mismatch)"))
      .expected(cat(seen_bytes, " bytes"))
      .found(cat(storage.bytes, " bytes"));
}

void check_torch_view(const TorchTensor& t) {
  if (t.offset_items < 0)
    throw Error(Code::kBadView, "the storage offset of a tensor is negative").found(t.offset_items);
  for (i64 stride : t.strides)
    if (stride < 0) throw Error(Code::kBadView, "a stride of a tensor is negative").found(stride);
  if (t.shape.items() == 0) return;
  i64 last = t.offset_items;
  for (int d = 0; d < t.shape.rank(); d++)
    last = checked_add(last, checked_mul(t.shape[d] - 1, t.strides[d], "a tensor's stride"),
                       "the extent of a tensor");
  i64 end = dtype_bytes(t.dtype, checked_add(last, 1, "the extent of a tensor"));
  if (end > t.storage.view_bytes)
    throw Error(Code::kBadView, "a tensor reaches out of the bounds of its storage")
        .expected(cat("at most ", t.storage.view_bytes, " bytes (storage '", escaped(t.storage.key), "')"))
        .found(cat(end, " bytes (size ", to_string(t.shape), ", stride ", dims_to_string(t.strides),
                   ", offset ", t.offset_items, ")"));
  i64 bytes = dtype_bytes(t.dtype, t.shape.items());
  if (bytes > kMostExpandedBytes && bytes > t.storage.view_bytes)
    throw Error(Code::kBadView, "a tensor repeats a small storage up to an enormous size (stride 0)")
        .expected(cat("at most ", kMostExpandedBytes, " bytes, or its storage's ", t.storage.view_bytes))
        .found(bytes);
}

}  // namespace mckpt::impl
