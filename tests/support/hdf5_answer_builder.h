// Answers of mckpt-hdf5, right and wrong, without the program.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "io/file/bytes.h"
#include "io/hdf5/wire.h"

namespace mckpt::impl {

class Hdf5AnswerBuilder {
 public:
  Hdf5AnswerBuilder() { raw(hdf5_wire::kMagic); }

  Hdf5AnswerBuilder& raw(std::string_view v) {
    for (char c : v) bytes_.push_back(static_cast<u8>(c));  // insert() alarms g++ 12
    return *this;
  }
  Hdf5AnswerBuilder& byte(int v) {
    bytes_.push_back(static_cast<u8>(v));
    return *this;
  }
  Hdf5AnswerBuilder& numbers(std::initializer_list<u64> values) {
    for (u64 v : values) append_le<u64>(bytes_, v);
    return *this;
  }
  Hdf5AnswerBuilder& text(std::string_view v) { return numbers({v.size()}).raw(v); }
  Hdf5AnswerBuilder& record(hdf5_wire::Record kind) {
    records_ += kind != hdf5_wire::Record::kEnd;
    return byte(static_cast<int>(kind));
  }
  // A float32 dataset up to its storage.
  Hdf5AnswerBuilder& dataset(std::string_view name, std::initializer_list<u64> dims) {
    record(hdf5_wire::Record::kDataset).text(name).numbers({800});
    byte(static_cast<int>(hdf5_wire::TypeClass::kFloat)).numbers({4}).byte(0);
    return numbers({32, 0, 0, 31, 23, 8, 0, 23, 127}).numbers({dims.size()}).numbers(dims).text("");
  }
  Hdf5AnswerBuilder& contiguous(u64 offset, u64 bytes) { return byte(0).numbers({offset, bytes}); }
  std::vector<u8> end() {
    record(hdf5_wire::Record::kEnd).numbers({records_});
    return bytes_;
  }
  const std::vector<u8>& bytes() const { return bytes_; }

 private:
  std::vector<u8> bytes_;
  u64 records_ = 0;
};

}  // namespace mckpt::impl
