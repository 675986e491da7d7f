// Keys of dicts and items of sets, made comparable: a code is equal for two values exactly where the values are
// equal, in one pickle or in two, however long, deep or shared they are. Lines for people (io/pickle/render.h)
// are not: they shorten.
//
//   'a'            t a                      1      i 1         to Python one key with True and 1.0
//   b'abc'         y abc                    True   b 1
//   ('a', 2**100)  d and a SHA-256 of the codes of the parts
#pragma once

#include <map>
#include <string>
#include <utility>

#include "io/pickle/value.h"

namespace mckpt::impl {

// Makes the codes. It keeps the codes of containers, so that shared containers cost nothing more.
class PickleCodes {
 public:
  // By value and type (1, 1.0 and True are three; tuple and torch.Size are two), or as Python finds a key.
  enum class Equal : u8 { kByType, kToPython };
  explicit PickleCodes(Equal equal = Equal::kByType) : equal_(equal) {}

  // Throws kUnsupportedPickle for a value with a tensor's storage in it, whose bytes are elsewhere, or with
  // something that was taken out of the pickle, and for one that contains itself; kPickleLimit if it is
  // nested too deep.
  std::string of(PickleValue v);

 private:
  std::string number(PickleValue v) const;
  std::string container(PickleValue v);
  std::string digest(PickleValue v);

  Equal equal_;
  std::map<std::pair<const PickleNode*, bool>, std::string> known_;  // by node and type; "": being made
  int depth_ = 0;
};

// A key as a part of a name or a path, as Python prints it. Different keys have different names: a name of one
// that a line cannot show whole ends in the first digits of its digest.
//
//   'a'   1   1.5   None   ('a', 1)   b'a\x00'   integer of 104 bits~9a1c2f44
std::string key_name(PickleValue key);

}  // namespace mckpt::impl
