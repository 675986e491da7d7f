// The classes and functions that pickles name: a fixed list of those whose meaning mckpt knows, and a
// verdict on all others. Nothing is ever imported or called. The verdict says what would happen in a loader
// that does:
//
//   argparse Namespace            listed     data, understood here
//   megatron.training Foo         unlisted   somebody's class: shown as a record, warned about
//   os system                     unsafe     runs code in a loader: an error of the file
#pragma once

#include <string_view>

#include "core/items/dtype.h"

namespace mckpt::impl {

// The meaning of a listed name to the interpreter and the readers. Ranges of it are compared (kRebuildTensor
// to kRebuildOther, kMetadata to kStorageMeta): keep them together.
enum class Known : u8 {
  kNothing,  // not on the list
  kData,     // on the list: a record without meaning of its own here
  // Containers and plain values, built by the interpreter itself.
  kDict,
  kDictLike,  // a dict with something more: defaultdict, Counter
  kList,
  kSet,
  kTuple,  // torch.Size as well
  kBytes,  // bytes, bytearray
  kEncode,
  kGetattr,
  kMake,  // copyreg's ways to make an object of a class
  kNamespace,
  kPath,
  kComplex,
  // torch
  kTorchValue,  // strided, per_tensor_affine and the like
  kDType,
  kStorage,
  kUntypedStorage,
  kRebuildTensor,
  kRebuildTensorV2,
  kRebuildTensorV3,
  kRebuildQTensor,
  kRebuildParameter,
  kRebuildFromType,
  kRebuildWrapperSubclass,
  kRebuildMeta,
  kRebuildOther,  // sparse, nested and the like: tensors that are not one strided block
  kDTensor,
  kDTensorSpec,
  kDeviceMesh,
  kMeshLayout,
  kFlatLayout,
  kShard,
  kStridedShard,
  kReplicate,
  kPartial,
  kShardedTensor,
  kTensorShard,  // a local shard of a ShardedTensor: its tensor and its ShardMetadata
  kShardMetadata,
  kShardedTensorMetadata,
  kProcessGroupState,
  kRemoteDevice,
  // torch.distributed.checkpoint
  kMetadata,
  kTensorStorageMetadata,
  kBytesStorageMetadata,
  kChunkStorageMetadata,
  kTensorProperties,
  kMetadataIndex,
  kStorageInfo,
  kStorageMeta,
  // numpy
  kNumpyReconstruct,
  kNumpyFromBuffer,
  kNumpyArray,
  kNumpyDType,
  kNumpyScalar,
};

// The verdict, for the user.
enum class Trust : u8 {
  kListed,
  kUnlisted,  // looks like a class of somebody's program: shown as a record
  kUnsafe,    // a function, or of Python's own library: can run code in a loader
};

// A name in one pickle. Made when the pickle names it first, owned by the Pickle.
struct PickleClass {
  std::string_view module, name;  // Python 2's spelling of builtins and copyreg is already replaced by Python
                                  // 3's
  Known known = Known::kNothing;
  Trust trust = Trust::kListed;
  DType dtype = DType::kU8;  // of kDType and kStorage
  i64 offset = 0;            // in the pickle, where it is first named
  i64 calls = 0;             // how often a loader would call it

  // Whether it names the second type of a kind, such as OrderedDict (PickleValue::is_second_type()).
  bool is_second_type() const;
};

// Fills known, trust and dtype from the two names, and replaces Python 2's names of modules.
void classify(PickleClass& c);

// Whether the name is of a value of torch, which no loader can call: a dtype, a layout, a scheme, or the class of a
// typed storage, for which torch.load has a value that only knows its dtype.
bool is_torch_value(const PickleClass& c);

// Whether a field of this name in an object's state would change what Python does with the object.
bool is_special_field(std::string_view name);

// Asked when a loader would call the class. A function that is not on the list is unsafe then, though
// naming it is not.
bool unsafe_to_call(const PickleClass& c);

}  // namespace mckpt::impl
