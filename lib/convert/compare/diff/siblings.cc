// A name with n numbers has n families: "layers.*.experts.1.up" and "layers.3.experts.*.up". The members of a
// family, of one type and shape, are siblings. Most siblings differ in their first items already, so few are
// read to their end. A thousand tensors may be asked for, and a family may have a million members.
#include "convert/compare/diff/siblings.h"

#include <algorithm>
#include <span>

#include "convert/compare/diff/could_read.h"
#include "core/base/name_hash.h"
#include "core/base/text.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"
#include "io/store/store.h"
#include "io/sums/sha256.h"

namespace mckpt::impl {
namespace {

constexpr i64 kFirstItems = 512;

// The name once for each of its numbers, without that number; with the type and the shape of the tensor.
std::vector<std::string> families_of(std::string_view name, const Store& store, i64 tensor) {
  const std::string kind = cat(" ", dtype_name(store.dtype(tensor)), dims_to_string(store.dims(tensor)));
  auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::vector<std::string> out;
  for (std::size_t at = 0; at < name.size();) {
    if (!is_digit(name[at])) {
      at++;
      continue;
    }
    std::size_t end = at;
    while (end < name.size() && is_digit(name[end])) end++;
    out.push_back(cat(name.substr(0, at), "*", name.substr(end), kind));
    at = end;
  }
  return out;
}

u64 first_hash(TensorReader& reader, const Store& store, i64 tensor) {
  std::string begin;
  i64 items = store.shape(tensor).items();
  if (dtype_info(store.dtype(tensor)).bits % 8 == 0) items = std::min(items, kFirstItems);
  reader.read(tensor, 0, items,
              [&](std::span<const u8> bytes, i64) { begin.append(bytes.begin(), bytes.end()); });
  return NameHash{}(begin);
}

std::string digest(TensorReader& reader, i64 tensor) {
  Sha256 sum;
  reader.read(tensor, [&](std::span<const u8> bytes, i64) { sum.update(bytes); });
  return sum.hex_digest();
}

}  // namespace

Siblings::Side::Side(const Store& s) : store(s), files(s), reader(s, files) {
  for (i64 t = 0; t < s.tensor_count(); t++)
    for (std::string& family : families_of(s.name(t), s, t)) families[std::move(family)].members.push_back(t);
}

u64 Siblings::Side::begin(i64 tensor) {
  auto at = begins.find(tensor);
  if (at == begins.end()) at = begins.emplace(tensor, first_hash(reader, store, tensor)).first;
  return at->second;
}

const std::string& Siblings::Side::sum(i64 tensor) {
  auto at = sums.find(tensor);
  if (at == sums.end()) at = sums.emplace(tensor, digest(reader, tensor)).first;
  return at->second;
}

Siblings::Alike* Siblings::Side::alike(const std::string& family, u64 begin) {
  auto at = families.find(family);
  if (at == families.end()) return nullptr;
  Family& of = at->second;
  while (of.read < of.members.size()) {
    const i64 t = of.members[of.read++];
    could_read([&] { of.by_begin[this->begin(t)].tensors.push_back(t); });
  }
  auto found = of.by_begin.find(begin);
  return found == of.by_begin.end() ? nullptr : &found->second;
}

i64 Siblings::Side::with_sum(Alike& siblings, const std::string& sum, i64 own) {
  while (true) {
    if (auto at = siblings.by_sum.find(sum); at != siblings.by_sum.end())
      for (i64 t : at->second)
        if (t != own) return t;
    if (siblings.summed == siblings.tensors.size()) return -1;
    const i64 next = siblings.tensors[siblings.summed++];
    could_read([&] {
      std::vector<i64>& first = siblings.by_sum[this->sum(next)];
      if (first.size() < 2) first.push_back(next);
    });
  }
}

Siblings::Siblings(const Store& a, const Store& b) : a_(a), b_(b) {}

i64 Siblings::found(Side& of, i64 tensor, Side& in, i64 own) {
  const u64 begin = of.begin(tensor);
  for (const std::string& family : families_of(in.store.name(own), of.store, tensor)) {
    Alike* alike = in.alike(family, begin);
    if (!alike || alike->tensors == std::vector<i64>{own}) continue;
    if (const i64 t = in.with_sum(*alike, of.sum(tensor), own); t >= 0) return t;
  }
  return -1;
}

std::string Siblings::hint(i64 of_a, i64 of_b) {
  if (i64 t = found(b_, of_b, a_, of_a); t >= 0)
    return cat("B has the values of ", escaped(a_.store.name(t)), " of A here");
  if (i64 t = found(a_, of_a, b_, of_b); t >= 0)
    return cat("the same values as ", escaped(b_.store.name(t)), " of B");
  return "";
}

}  // namespace mckpt::impl
