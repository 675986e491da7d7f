// Reads the JSON of a dump. Nothing in it is trusted: sizes are checked against shapes, names against each
// other, digests for their form.
#include "io/rank_dump/rank_dump.h"

#include <algorithm>
#include <set>
#include <type_traits>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "io/file/file.h"
#include "io/file/folder.h"
#include "io/json/json.h"
#include "io/json/json_file.h"

namespace mckpt::impl {
namespace {

// The member of an object. Throws kBadJson without it.
const JsonValue& member(const JsonValue& of, std::string_view name) {
  if (const JsonValue* found = of.find(name)) return *found;
  throw Error(Code::kBadJson, cat("a dump of a rank lacks '", name, "'"));
}

std::vector<i64> numbers(const JsonValue& value, std::string_view what) {
  std::vector<i64> out;
  for (const JsonValue& n : value.array(what)) {
    out.push_back(n.integer(what));
    if (out.back() < 0)
      throw Error(Code::kBadJson, cat("a number of '", what, "' is negative")).found(out.back());
  }
  return out;
}

template <typename T>
std::optional<T> attribute(const JsonValue& of, std::string_view name) {
  const JsonValue* found = of.find(name);
  if (!found || found->is(JsonType::kNull)) return std::nullopt;
  if constexpr (std::is_same_v<T, bool>)
    return found->boolean(name);
  else
    return found->integer(name);
}

DumpedAttributes attributes_of(const JsonValue& of) {
  if (!of.is(JsonType::kObject))
    throw Error(Code::kBadJson, "the attributes of a tensor are not an object").found(of.summary());
  return {.tensor_model_parallel = attribute<bool>(of, "tensor_model_parallel"),
          .sequence_parallel = attribute<bool>(of, "sequence_parallel"),
          .allreduce = attribute<bool>(of, "allreduce"),
          .partition_dim = attribute<i64>(of, "partition_dim"),
          .partition_stride = attribute<i64>(of, "partition_stride")};
}

bool is_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

// Throws kContradiction for a part that is not inside its tensor.
void check_part(const DumpedTensor& t) {
  auto refuse = [&](const char* what) {
    throw Error(Code::kBadJson, what)
        .expected(cat("a part of ", dims_to_string(t.shape)))
        .found(cat(dims_to_string(t.sizes), t.offset ? cat(" at ", dims_to_string(*t.offset)) : ""));
  };
  if (t.sizes.size() != t.shape.size() || (t.offset && t.offset->size() != t.shape.size()))
    refuse("the rank's part has another number of dimensions than its tensor");
  const bool empty = std::ranges::find(t.sizes, 0) != t.sizes.end();
  for (std::size_t d = 0; d < t.shape.size() && !empty; d++)
    if (t.sizes[d] > t.shape[d] || (t.offset && (*t.offset)[d] > t.shape[d] - t.sizes[d]))
      refuse("the rank's part is not inside its tensor");
}

DumpedTensor tensor_of(const JsonValue& row) {
  DumpedTensor t;
  t.name = member(row, "name").string("name");
  try {
    t.dtype = member(row, "dtype").string("dtype");
    t.shape = numbers(member(row, "shape"), "shape");
    t.sizes = numbers(member(row, "local_shape"), "local_shape");
    if (const JsonValue& offset = member(row, "offset"); !offset.is(JsonType::kNull))
      t.offset = numbers(offset, "offset");
    for (const JsonValue& p : member(row, "placements").array("placements"))
      t.placements.push_back(p.string("a placement"));
    t.attributes = attributes_of(member(row, "attributes"));
    t.sha256 = member(row, "sha256").string("sha256");
    checked_items(t.shape), checked_items(t.sizes);
    if (!is_sha256(t.sha256))
      throw Error(Code::kBadJson, "the digest of a tensor is not a SHA-256")
          .expected("64 digits in lower case")
          .found(escaped(t.sha256, 80));
    check_part(t);
  } catch (Error& e) {
    e.default_tensor(t.name);
    throw;
  }
  return t;
}

}  // namespace

bool is_rank_dump(const std::string& path, const OpenOptions& opening) {
  if (!is_file(path, opening)) return false;
  const InputFile file(path, opening);
  constexpr i64 kHead = 256;  // `schema` is the first member
  std::vector<u8> head(static_cast<std::size_t>(std::min(kHead, file.size())));
  file.read(0, head);
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  return text.starts_with('{') && text.find("\"mckpt.rank_dump/") != text.npos;
}

RankDump read_rank_dump(const std::string& path, const OpenOptions& opening) {
  return with_file(path, [&] {
    const InputFile file(path, opening);
    RankDump dump{.path = path};
    std::set<std::string, std::less<>> names;
    const JsonValue rest = parse_json_list(json_text(file), "tensors", [&](JsonListed row) {
      if (!row.name.empty())
        throw Error(Code::kBadJson, "the tensors of a dump are no list").found(escaped(row.name, 80));
      dump.tensors.push_back(tensor_of(row.value));
      if (!names.insert(dump.tensors.back().name).second)
        throw Error(Code::kBadJson, "a dump of a rank has a tensor twice").tensor(dump.tensors.back().name);
    });
    const std::string& schema = member(rest, "schema").string("schema");
    member(rest, "tensors").array("tensors");
    if (schema != kRankDumpSchema)
      throw Error(Code::kBadJson, "the dump of a rank has another schema")
          .expected(kRankDumpSchema)
          .found(escaped(schema, 80));
    dump.rank = member(rest, "rank").integer("rank"), dump.world = member(rest, "world").integer("world");
    if (dump.rank < 0 || dump.world <= dump.rank)
      throw Error(Code::kBadJson, "a dump is of a rank that its run does not have")
          .expected(dump.world > 0 ? cat("0 to ", dump.world - 1) : "a run of at least one rank")
          .found(dump.rank);
    return dump;
  });
}

}  // namespace mckpt::impl
