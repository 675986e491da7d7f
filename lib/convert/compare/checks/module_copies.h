// Weights that DeepSpeed ZeRO saves twice: training computes with the copies in `module` and in the files of
// experts, and steps with the float32 parts of the optimizer, which are the tensors of the store. A run that
// is loaded without its optimizer has the copies alone.
#pragma once

#include <string>

namespace mckpt::impl {

class Store;
struct TensorChoice;
struct VerifyReport;

// Lists the copies that both sides have under one name and shape as tensors of both. The others are not
// compared: the check "copies" of a side names them. `choice`: of the comparison, by names of tensors.
void list_module_copies(Store& tested, Store& source, const TensorChoice& choice, VerifyReport& report);

// The number of tensor-parallel ranks, each of which has shards; "" where every weight is whole.
std::string tensor_parallel_ranks(const Store& store);

// "25 weights that DeepSpeed saves beside their float32 parts were"; "": none was left out.
std::string counted_module_copies(const VerifyReport& report);

}  // namespace mckpt::impl
