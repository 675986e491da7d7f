// Checks the arguments of the functions by which torch rebuilds tensors. The numbers are torch 2.11's.
#include "io/torch/table/calls.h"

#include <limits>
#include <string_view>

#include "core/base/error.h"
#include "io/pickle/render.h"

namespace mckpt::impl {
namespace {

using Kind = PickleValue::Kind;

// The numbers of arguments that a function takes, and which of them is requires_grad (-1: none).
struct Signature {
  i64 least, most, gradient;
};

// Any number for functions that are not in the list.
Signature signature_of(const TorchCall& call) {
  switch (call.function) {
    case Known::kRebuildTensor:
      return {4, 4, -1};
    case Known::kRebuildTensorV2:
      return {6, 7, 4};
    case Known::kRebuildTensorV3:
      return {7, 8, 4};
    case Known::kRebuildQTensor:
      return {7, 7, 5};
    case Known::kRebuildWrapperSubclass:
      return {8, 8, 7};
    case Known::kRebuildParameter:
      return call.has_state ? Signature{4, 4, 1} : Signature{3, 3, 1};
    default:
      return {0, std::numeric_limits<i64>::max(), -1};
  }
}

// mckpt refuses all that torch refuses: `verify` would otherwise call a file sound that does not load.
Error refused(std::string_view what) { return Error(Code::kBadPickle, cat(what, ": torch refuses it")); }

void check_count(i64 found, i64 least, i64 most) {
  if (found >= least && found <= most) return;
  throw refused("the call that makes a tensor has a wrong number of arguments")
      .expected(least == most ? cat(least) : cat(least, " or ", most))
      .found(found);
}

// The newest of the functions takes None for false.
bool is_gradient(Known function, PickleValue v) {
  return v.is(Kind::kBool) || (v.is_none() && function == Known::kRebuildTensorV3);
}

bool is_dict_or_none(PickleValue v) { return v.is_none() || v.is(Kind::kDict); }

// Python's attributes of a parameter: a dict, or a tuple of a dict and the slots.
void check_parameter_state(PickleValue state) {
  bool pair = state.is(Kind::kTuple) && state.size() == 2;
  if (is_dict_or_none(state) || (pair && is_dict_or_none(state.at(0)) && is_dict_or_none(state.at(1))))
    return;
  throw refused("the state of a parameter is not a dict").found(pickle_line(state, 60));
}

// (torch.per_tensor_affine, scale, zero point), or (torch.per_channel_affine, scales, zero points, axis).
void check_quantizer(PickleValue params) {
  std::string_view scheme;
  if (params.is(Kind::kTuple) && params.at(0).is(Kind::kClass) && params.at(0).as_class().module == "torch")
    scheme = params.at(0).as_class().name;
  // A scale of true or false is one of 1 or 0.
  auto is_scale = [](PickleValue v) { return v.is(Kind::kFloat) || v.is(Kind::kBool) || v.is_int(); };
  bool number = params.size() > 2 && is_scale(params.at(1)) && params.at(2).is_int();
  bool by_tensor = scheme == "per_tensor_affine" && params.size() == 3 && number;
  bool by_channel =
      (scheme == "per_channel_affine" || scheme == "per_channel_affine_float_qparams") && params.size() == 4;
  if (by_tensor || by_channel) return;
  throw refused(
      "the quantization of a tensor is not one of torch's schemes with the right number of parameters")
      .expected("per_tensor_affine with 2, or per_channel_affine with 3")
      .found(pickle_line(params, 80));
}

}  // namespace

TorchCall torch_call(PickleValue v) {
  if (!v.is(Kind::kObject)) return {};
  const PickleObject& object = v.as_object();
  TorchCall call{.function = object.type->known, .args = object.args};
  if (call.function != Known::kRebuildFromType) {
    call.has_state = object.type->name.ends_with("_with_state");
    return call;
  }
  PickleValue function = object.args.at(0);
  call.outer_args = object.args.size();
  call.type = object.args.at(1);
  call.state = object.args.at(3);
  call.args = object.args.at(2);
  call.function = function.is(Kind::kClass) ? function.as_class().known : Known::kNothing;
  return call;
}

PickleValue backward_hooks(const TorchCall& call) {
  const i64 gradient = signature_of(call).gradient;
  return gradient < 0 ? PickleValue() : call.args.at(gradient + 1);
}

void check_torch_call(const TorchCall& call) {
  if (call.outer_args >= 0) {
    check_count(call.outer_args, kFromTypeArgs, kFromTypeArgs);
    if (!call.type.is(Kind::kClass))
      throw refused("the class of a tensor is not a class").found(pickle_line(call.type, 60));
  }
  Signature signature = signature_of(call);
  check_count(call.args.size(), signature.least, signature.most);
  if (signature.gradient >= 0 && !is_gradient(call.function, call.args.at(signature.gradient)))
    throw refused("requires_grad of a tensor is not a bool")
        .found(pickle_line(call.args.at(signature.gradient), 60));
  if (call.function == Known::kRebuildQTensor) check_quantizer(call.args.at(4));
  if (call.has_state) check_parameter_state(call.args.at(3));
}

void check_gradient(const TorchCall& call, DType dtype) {
  i64 at = signature_of(call).gradient;
  if (at < 0 || call.args.at(at).is_none() || !call.args.at(at).as_bool()) return;
  DTypeKind kind = dtype_info(dtype).kind;
  if (kind != DTypeKind::kFloat && kind != DTypeKind::kComplex)
    throw refused("a tensor requires a gradient, which its type cannot have").found(dtype_name(dtype));
  // torch writes such a file and fails to read it.
  if (call.function == Known::kRebuildTensorV3)
    throw refused("a tensor of a type without a storage class requires a gradient, but is not a parameter")
        .found(dtype_name(dtype))
        .help("save it again as a torch.nn.Parameter, or without requires_grad");
}

}  // namespace mckpt::impl
