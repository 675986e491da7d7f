// The list of known classes and functions, and the judgement of all other names. A name that is not on the
// list is unsafe if it belongs to Python's standard library, is a function, or reaches into another object
// by a dot; classes of other packages are harmless records.
#include "io/pickle/classes.h"

#include <algorithm>

namespace mckpt::impl {
namespace {

// Names that change what Python does with an object when its dict has them.
constexpr std::string_view kSpecialFields[] = {
    "__setstate__",     "__reduce__",  "__reduce_ex__", "__class__", "__new__",
    "__getattribute__", "__getattr__", "__del__",       "__call__",  "__init__"};

// Words parted by spaces: every module of the first list has every name of the second.
struct Row {
  std::string_view modules, names;
  Known known;
};

constexpr Row kRows[] = {
    {"builtins", "bytes bytearray", Known::kBytes},
    {"builtins", "complex", Known::kComplex},
    {"builtins", "dict", Known::kDict},
    {"builtins", "getattr", Known::kGetattr},
    {"builtins", "list", Known::kList},
    {"builtins", "set frozenset", Known::kSet},
    {"builtins", "tuple", Known::kTuple},
    {"builtins", "object int float str bool slice range Ellipsis NotImplemented", Known::kData},
    // The names by which protocols up to 2 call int, str and range.
    {"builtins", "long unicode xrange", Known::kData},
    {"collections", "OrderedDict", Known::kDict},
    {"collections", "defaultdict Counter", Known::kDictLike},
    {"collections", "deque", Known::kList},
    {"_codecs", "encode", Known::kEncode},
    {"copyreg", "_reconstructor __newobj__", Known::kMake},
    {"argparse", "Namespace", Known::kNamespace},
    {"types", "SimpleNamespace", Known::kNamespace},
    {"pathlib pathlib._local", "Path PurePath PosixPath PurePosixPath WindowsPath PureWindowsPath",
     Known::kPath},
    {"datetime", "date time datetime timedelta timezone", Known::kData},
    {"array", "array _array_reconstructor", Known::kData},
    {"decimal", "Decimal", Known::kData},
    {"fractions", "Fraction", Known::kData},
    {"functools", "partial", Known::kData},
    {"io _io", "BytesIO", Known::kData},
    {"logging", "getLogger", Known::kData},
    {"random", "Random", Known::kData},
    {"re", "_compile", Known::kData},
    {"signal", "Signals", Known::kData},
    {"uuid", "UUID SafeUUID", Known::kData},
    {"torch", "Size", Known::kTuple},
    {"torch", "device Tensor", Known::kData},
    {"torch",
     "strided contiguous_format channels_last channels_last_3d preserve_format per_tensor_affine per_tensor_symmetric per_channel_affine per_channel_symmetric per_channel_affine_float_qparams",
     Known::kTorchValue},
    {"torch.nn.parameter", "Parameter Buffer", Known::kData},
    {"torch._C", "Generator", Known::kData},
    {"torch.serialization", "_get_layout", Known::kData},
    {"torch._utils", "_rebuild_tensor", Known::kRebuildTensor},
    {"torch._utils", "_rebuild_tensor_v2", Known::kRebuildTensorV2},
    {"torch._utils", "_rebuild_tensor_v3", Known::kRebuildTensorV3},
    {"torch._utils", "_rebuild_qtensor", Known::kRebuildQTensor},
    {"torch._utils", "_rebuild_parameter _rebuild_parameter_with_state", Known::kRebuildParameter},
    {"torch._utils", "_rebuild_wrapper_subclass", Known::kRebuildWrapperSubclass},
    {"torch._utils", "_rebuild_meta_tensor_no_storage", Known::kRebuildMeta},
    {"torch._utils",
     "_rebuild_sparse_tensor _rebuild_sparse_csr_tensor _rebuild_nested_tensor _rebuild_device_tensor_from_cpu_tensor _rebuild_device_tensor_from_numpy _rebuild_xla_tensor",
     Known::kRebuildOther},
    {"torch.nested._internal.nested_tensor", "_rebuild_njt", Known::kRebuildOther},
    {"torch.nested._internal.nested_tensor", "NestedTensor", Known::kData},
    {"torch._tensor torch.tensor", "_rebuild_from_type _rebuild_from_type_v2", Known::kRebuildFromType},
    {"torch.distributed.tensor torch.distributed.tensor._api torch.distributed.tensor.api torch.distributed._tensor torch.distributed._tensor.api",
     "DTensor", Known::kDTensor},
    {"torch.distributed.tensor._dtensor_spec torch.distributed._tensor._dtensor_spec torch.distributed._tensor.placement_types",
     "DTensorSpec", Known::kDTensorSpec},
    {"torch.distributed.tensor._dtensor_spec torch.distributed._tensor._dtensor_spec torch.distributed._tensor.placement_types",
     "TensorMeta ShardOrderEntry", Known::kData},
    {"torch.fx.passes.shape_prop", "TensorMetadata", Known::kData},
    {"torch.distributed.tensor.placement_types torch.distributed._tensor.placement_types", "Shard",
     Known::kShard},
    {"torch.distributed.tensor.placement_types torch.distributed._tensor.placement_types", "_StridedShard",
     Known::kStridedShard},
    {"torch.distributed.tensor.placement_types torch.distributed._tensor.placement_types", "Replicate",
     Known::kReplicate},
    {"torch.distributed.tensor.placement_types torch.distributed._tensor.placement_types", "Partial _Partial",
     Known::kPartial},
    {"torch.distributed._shard.sharded_tensor.api torch.distributed._shard.sharded_tensor", "ShardedTensor",
     Known::kShardedTensor},
    {"torch.distributed._shard.sharded_tensor.api torch.distributed._shard.sharded_tensor",
     "ShardedTensor.ProcessGroupState", Known::kProcessGroupState},
    {"torch.distributed._shard.sharded_tensor.shard torch.distributed._shard.sharded_tensor", "Shard",
     Known::kTensorShard},
    {"torch.distributed._shard.metadata", "ShardMetadata", Known::kShardMetadata},
    {"torch.distributed._shard.sharded_tensor.metadata torch.distributed._shard.sharded_tensor",
     "ShardedTensorMetadata", Known::kShardedTensorMetadata},
    {"torch.distributed.remote_device", "_remote_device", Known::kRemoteDevice},
    {"torch.distributed._shard.sharding_spec.chunk_sharding_spec torch.distributed._shard.sharding_spec.api torch.distributed._shard.sharding_spec",
     "ChunkShardingSpec EnumerableShardingSpec", Known::kData},
    {"deepspeed.utils.tensor_fragment", "fragment_address", Known::kData},
    {"deepspeed.runtime.zero.config", "ZeroStageEnum", Known::kData},
    {"deepspeed.runtime.fp16.loss_scaler", "LossScaler DynamicLossScaler", Known::kData},
    {"torch.distributed.device_mesh torch.distributed._tensor.device_mesh", "DeviceMesh", Known::kDeviceMesh},
    {"torch.distributed._mesh_layout", "_MeshLayout", Known::kMeshLayout},
    {"torch.distributed._mesh_layout", "_FlatLayout", Known::kFlatLayout},
    {"torch.distributed.checkpoint.metadata torch.distributed._shard.checkpoint.metadata", "Metadata",
     Known::kMetadata},
    {"megatron.core.dist_checkpointing.strategies.torch", "MCoreMetadata", Known::kMetadata},
    {"torch.distributed.checkpoint.metadata torch.distributed._shard.checkpoint.metadata",
     "TensorStorageMetadata", Known::kTensorStorageMetadata},
    {"torch.distributed.checkpoint.metadata torch.distributed._shard.checkpoint.metadata",
     "BytesStorageMetadata", Known::kBytesStorageMetadata},
    {"torch.distributed.checkpoint.metadata torch.distributed._shard.checkpoint.metadata",
     "ChunkStorageMetadata", Known::kChunkStorageMetadata},
    {"torch.distributed.checkpoint.metadata torch.distributed._shard.checkpoint.metadata", "MetadataIndex",
     Known::kMetadataIndex},
    {"torch.distributed.checkpoint.metadata torch.distributed._shard.checkpoint.metadata", "StorageMeta",
     Known::kStorageMeta},
    {"torch.distributed.checkpoint.metadata torch.distributed._shard.checkpoint.metadata torch.distributed._shard.sharded_tensor.metadata",
     "TensorProperties", Known::kTensorProperties},
    {"torch.distributed.checkpoint.metadata torch.distributed._shard.checkpoint.metadata torch.distributed._shard.sharded_tensor.metadata",
     "_MEM_FORMAT_ENCODING MEM_FORMAT_ENCODING", Known::kData},
    {"torch.distributed.checkpoint.filesystem torch.distributed._shard.checkpoint.filesystem", "_StorageInfo",
     Known::kStorageInfo},
    // Megatron-Core 0.19 stores the plans of all ranks in .metadata.
    {"torch.distributed.checkpoint.planner torch.distributed._shard.checkpoint.planner",
     "SavePlan LoadPlan WriteItem ReadItem WriteItemType LoadItemType TensorWriteData BytesIOWriteData",
     Known::kData},
    {"numpy.core.multiarray numpy._core.multiarray", "_reconstruct", Known::kNumpyReconstruct},
    {"numpy.core.multiarray numpy._core.multiarray", "scalar", Known::kNumpyScalar},
    {"numpy.core.numeric numpy._core.numeric", "_frombuffer", Known::kNumpyFromBuffer},
    {"numpy", "ndarray", Known::kNumpyArray},
    {"numpy", "dtype", Known::kNumpyDType},
    {"numpy",
     "bool_ bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 longdouble complex64 complex128 str_ bytes_ void object_ datetime64 timedelta64",
     Known::kData},
    {"numpy.dtypes",
     "BoolDType Int8DType Int16DType Int32DType Int64DType UInt8DType UInt16DType UInt32DType UInt64DType Float16DType Float32DType Float64DType",
     Known::kData},
    {"numpy.random._pickle", "__randomstate_ctor __generator_ctor __bit_generator_ctor", Known::kData},
    {"numpy.random._mt19937 numpy.random._pcg64 numpy.random._philox numpy.random._sfc64",
     "MT19937 PCG64 PCG64DXSM Philox SFC64", Known::kData},
    {"numpy.random.bit_generator", "SeedSequence __pyx_unpickle_SeedSequence", Known::kData},
    {"megatron.core.enums", "ModelType", Known::kData},
    {"megatron.core.optimizer.optimizer_config", "OptimizerConfig", Known::kData},
    {"megatron.core.rerun_state_machine", "RerunDiagnostic RerunMode RerunState", Known::kData},
    {"megatron.core.transformer.enums",
     "AttnBackend AttnMaskType AttnType LayerType CudaGraphModule CudaGraphScope InferenceCudaGraphScope",
     Known::kData},
};

// The top-level modules of Python's standard library, all versions together, and of the tools that come
// with it. Whatever of it is not in the table above is assumed to run code or open files.
constexpr std::string_view kStandardLibrary =
    "BaseHTTPServer CGIHTTPServer Queue SimpleHTTPServer SocketServer StringIO Tkinter UserDict UserList UserString __builtin__ __future__ _abc _aix_support _ast _asyncio _bisect _blake2 _bootsubprocess _bz2 _codecs _codecs_cn _codecs_hk _codecs_iso2022 _codecs_jp _codecs_kr _codecs_tw _collections _collections_abc _compat_pickle _compression _contextvars _crypt _csv _ctypes _curses _curses_panel _datetime _dbm _decimal _elementtree _frozen_importlib _frozen_importlib_external _functools _gdbm _hashlib _heapq _imp _io _json _locale _lsprof _lzma _markupbase _md5 _msi _multibytecodec _multiprocessing _opcode _operator _osx_support _overlapped _pickle _posixshmem _posixsubprocess _py_abc _pydecimal _pyio _queue _random _scproxy _sha1 _sha256 _sha3 _sha512 _signal _sitebuiltins _socket _sqlite3 _sre _ssl _stat _statistics _string _strptime _struct _symtable _thread _threading_local _tkinter _tokenize _tracemalloc _typing _uuid _warnings _weakref _weakrefset _winapi _zoneinfo abc aifc annotationlib antigravity argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb binascii binhex bisect builtins bz2 cPickle cProfile cStringIO calendar cgi cgitb chunk cmath cmd code codecs codeop collections colorsys commands compileall compression concurrent configparser contextlib contextvars cookielib copy copyreg crypt csv ctypes curses dataclasses datetime dbm decimal difflib dis distutils doctest dummy_thread dummy_threading email encodings ensurepip enum errno exceptions faulthandler fcntl filecmp fileinput fnmatch formatter fractions ftplib functools gc genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac html http httplib idlelib ihooks imaplib imghdr imp importlib imputil inspect io ipaddress itertools json keyword lib2to3 linecache locale logging lzma macpath mailbox mailcap marshal math md5 mhlib mimetools mimetypes mmap modulefinder msilib msvcrt multifile multiprocessing netrc new nis nntplib nt ntpath nturl2path numbers opcode operator optparse org os ossaudiodev parser pathlib pdb pickle pickletools pip pipes pkg_resources pkgutil platform plistlib popen2 poplib posix posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri random re readline repr reprlib resource rexec rfc822 rlcompleter runpy sched secrets select selectors sets setuptools sha shelve shlex shutil signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile sre_constants sre_parse ssl stat statistics statvfs string stringprep struct subprocess sunau symbol symtable sys sysconfig syslog tabnanny tarfile telnetlib tempfile termios test textwrap this thread threading time timeit tkinter token tokenize tomllib trace traceback tracemalloc tty turtle turtledemo types typing unicodedata unittest urllib urllib2 urlparse user uu uuid venv warnings wave weakref webbrowser whichdb winreg winsound wsgiref xdrlib xml xmlrpc xmlrpclib zipapp zipfile zipimport zlib zoneinfo";

// Whether `word` is one of the words; pre: it has no space.
bool has_word(std::string_view words, std::string_view word) {
  for (std::size_t at = words.find(word); at != words.npos; at = words.find(word, at + 1)) {
    bool begins = at == 0 || words[at - 1] == ' ';
    std::size_t end = at + word.size();
    if (begins && (end == words.size() || words[end] == ' ')) return true;
  }
  return false;
}

Known listed(std::string_view module, std::string_view name) {
  // A space would match across words.
  if (module.empty() || name.empty() || name.find(' ') != name.npos || module.find(' ') != module.npos)
    return Known::kNothing;
  for (const Row& row : kRows)
    if (has_word(row.names, name) && has_word(row.modules, module)) return row.known;
  return Known::kNothing;
}

bool in_standard_library(std::string_view module) {
  std::string_view top = module.substr(0, module.find('.'));
  return top.empty() || has_word(kStandardLibrary, top);
}

// torch.bfloat16, torch.FloatStorage, torch.cuda.HalfStorage: found in the table of data types, which rows
// here would repeat.
bool is_torch_type(PickleClass& c) {
  if (c.module != "torch" && c.module != "torch.cuda" && c.module != "torch.storage") return false;
  if (c.module == "torch.storage") {
    if (c.name == "UntypedStorage") c.known = Known::kUntypedStorage;
    return c.known == Known::kUntypedStorage;
  }
  for (const DTypeInfo& info : all_dtypes()) {
    bool is_dtype = c.module == "torch" && info.in_torch && info.name == c.name;
    bool is_storage = !info.torch_storage.empty() && c.name.starts_with(info.torch_storage) &&
                      c.name.substr(info.torch_storage.size()) == "Storage";
    if (!is_dtype && !is_storage) continue;
    if (c.module == "torch.cuda" && info.kind == DTypeKind::kQuantized) return false;  // CUDA has none
    c.known = is_dtype ? Known::kDType : Known::kStorage;
    c.dtype = info.dtype;
    return true;
  }
  return false;
}

// By the spelling of Python programs: Namespace and _MeshLayout are classes, system and _get_layout
// functions.
bool looks_like_class(std::string_view name) {
  std::size_t letter = name.find_first_not_of('_');
  return letter != name.npos && name[letter] >= 'A' && name[letter] <= 'Z';
}

// Modules of torch whose functions a pickled model names as its activation.
bool computes_only(std::string_view module) {
  return module == "torch._C._nn" || module == "torch.nn" || module.starts_with("torch.nn.");
}

}  // namespace

bool is_torch_value(const PickleClass& c) {
  return c.known == Known::kTorchValue || c.known == Known::kDType || c.known == Known::kStorage;
}

bool is_special_field(std::string_view name) {
  return name.starts_with("__") &&
         std::find(std::begin(kSpecialFields), std::end(kSpecialFields), name) != std::end(kSpecialFields);
}

// A name with a dot walks through attributes of its first part, which may be anything.
void classify(PickleClass& c) {
  if (c.module == "__builtin__") c.module = "builtins";
  if (c.module == "copy_reg") c.module = "copyreg";
  if (is_torch_type(c)) return;
  c.known = listed(c.module, c.name);
  if (c.known != Known::kNothing) return;
  // A dotted name walks through attributes to something that its first part does not tell.
  bool dotted = c.name.find('.') != c.name.npos;
  bool harmless = looks_like_class(c.name) || computes_only(c.module);
  c.trust = dotted || !harmless || in_standard_library(c.module) ? Trust::kUnsafe : Trust::kUnlisted;
}

bool PickleClass::is_second_type() const {
  static constexpr std::string_view kSecond[] = {"OrderedDict", "deque", "frozenset", "Size", "bytearray"};
  return known >= Known::kDict && known <= Known::kBytes &&
         std::ranges::find(kSecond, name) != std::end(kSecond);
}

bool unsafe_to_call(const PickleClass& c) {
  return c.trust == Trust::kUnsafe || (c.trust == Trust::kUnlisted && !looks_like_class(c.name));
}

}  // namespace mckpt::impl
