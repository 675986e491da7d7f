// The check "main": weights against the rounded main weights of the optimizer.
#include "convert/compare/checks/main_weights.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "core/base/observer.h"
#include "core/base/text.h"
#include "io/verify/verify.h"
#include "tests/support/table_store.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace main_weights_test {

// A weight of bfloat16 and its main weight, by their bits.
struct Parameter {
  std::string name;
  std::vector<u16> weight;
  std::vector<u32> main;
};

// A store of these; the last tensor lacks `cut` bytes of the file.
class Made {
 public:
  explicit Made(const std::vector<Parameter>& parameters, i64 cut = 0) : store(folder_.path()) {
    for (const Parameter& p : parameters) {
      add("model.module." + p.name, DType::kBF16, p.weight);
      add("optimizer.state.module.module.module." + p.name + ".fp32_param", DType::kF32, p.main);
    }
    bytes_.resize(bytes_.size() - static_cast<std::size_t>(cut));
    folder_.put("data", bytes_);
    store.add_file("data", std::ssize(bytes_));
  }

 private:
  TempFolder folder_;
  std::string bytes_;

  template <typename Bits>
  void add(const std::string& name, DType dtype, const std::vector<Bits>& items) {
    ChunkData data;
    data.file = 0, data.dtype = dtype, data.offset = std::ssize(bytes_);
    bytes_.append(reinterpret_cast<const char*>(items.data()), items.size() * sizeof(Bits));
    const std::vector<i64> dims{std::ssize(items)};
    store.tensors.push_back({name, dtype, dims, {{{0}, dims, data}}});
  }

 public:
  TableStore store;
};

class Counted final : public Observer {
 public:
  void begin(const std::string&, i64 bytes) override { announced += bytes; }
  void done(i64 bytes) override { read += bytes; }
  bool stop() override { return stopped; }
  i64 announced = 0;
  std::atomic<i64> read = 0;
  bool stopped = false;
};

// "pass 2 tensors", or "fail 1 tensor: " and the findings.
std::string checked(const Store& store, VerifyReport report = {}) {
  Counted observer;
  const std::size_t before = report.findings.size();
  check_main_weights(store, 2, observer, report);
  if (report.checks.empty()) return "";
  const Check& check = report.checks.back();
  std::string out = cat(status_name(check.status), " ", looked_at(check));
  for (std::size_t f = before; f < report.findings.size(); f++)
    out += cat(": ", code_name(report.findings[f].code), " ", report.findings[f].message);
  if (check.unseen == 0) {
    EXPECT_EQ(observer.read.load(), observer.announced);
  }
  return out;
}

const Parameter kHalves{"a", {0x3f00, 0x3f00}, {0x3f000000, 0x3f000001}};

TEST(MainWeights, AreTheWeightsRounded) {
  EXPECT_EQ(checked(Made({kHalves, {"b", {0x3f80}, {0x3f800000}}}).store), "pass 2 tensors");
  EXPECT_NE(checked(Made({{"a", {0x3f00, 0x3f80, 0x3f00}, {0x3f000000, 0x3f000000, 0x3f000000}}}).store)
                .find("fail 1 tensor: MC1311 1 value of 3 differs from the main weight"),
            std::string::npos);
}

TEST(MainWeights, AgreeWhereBothAreNaN) {
  for (const u16 weight : std::vector<u16>{0x7fc0, 0x7fff, 0xffc0, 0x7f81})
    EXPECT_EQ(checked(Made({{"a", {0x3f00, weight}, {0x3f000000, 0xffc00000}}}).store), "pass 1 tensor");
  EXPECT_NE(checked(Made({{"a", {0x3f00, 0x3f00, 0x7fc0}, {0x3f000000, 0x3f000000, 0x3f000000}}}).store)
                .find("fail 1 tensor"),
            std::string::npos);
}

TEST(MainWeights, CountsWhatWasComparedAlone) {
  const Made made({kHalves, {"b", {0x3f80}, {0x3f800000}}}, 2);
  EXPECT_NE(checked(made.store).find("fail 1 tensor, 1 could not be read: MC"), std::string::npos);
  VerifyReport told;
  told.add({.name = "values", .unit = "items"}, {{.code = Code::kCutShort, .tensor = "model.module.b"}});
  EXPECT_EQ(checked(made.store, told), "warn 1 tensor, 1 could not be read");
}

TEST(MainWeights, CanBeStopped) {
  const Made made({kHalves});
  Counted observer;
  observer.stopped = true;
  VerifyReport report;
  EXPECT_EQ(thrown_by([&] { check_main_weights(made.store, 1, observer, report); }).substr(0, 6), "MC3002");
}

}  // namespace main_weights_test
}  // namespace mckpt::impl
