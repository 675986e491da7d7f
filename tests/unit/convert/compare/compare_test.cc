#include <gtest/gtest.h>

#include <atomic>

#include "convert/compare/verify.h"
#include "core/base/error.h"
#include "core/base/observer.h"
#include "tests/support/safetensors_text.h"
#include "tests/support/temp_folder.h"
#include "tests/support/torch_builder.h"

namespace mckpt::impl {
namespace {

// Two tensors: "a" float32 [4], "b" of any type with two items.
std::string model(const std::vector<float>& a, std::string_view b_type = "I16", std::string_view b = "1234",
                  std::string_view a_name = "a") {
  std::string data(reinterpret_cast<const char*>(a.data()), a.size() * sizeof(float));
  i64 begin = std::ssize(data), end = begin + std::ssize(b);
  std::string header = cat("{", safetensors_entry(a_name, "F32", cat(a.size()), 0, begin), ",",
                           safetensors_entry("b", b_type, "2", begin, end), "}");
  return safetensors_file(header, data + std::string(b));
}

template <typename Fn>
std::optional<Code> code_of(Fn&& fn) {
  try {
    fn();
  } catch (const Error& e) {
    return e.code();
  }
  return std::nullopt;
}

class Compare : public testing::Test {
 protected:
  Verified compared(std::string_view tested, std::string_view source) {
    tested_ = folder_.put("tested.safetensors", tested);
    source_ = folder_.put("source.safetensors", source);
    VerifyOptions options{.threads = 2, .against = source_};
    return verify(tested_, options, observer_);
  }
  // "CODE tensor: message" for each finding.
  static std::string findings(const Verified& v) {
    std::string out;
    for (const Finding& f : v.report.findings)
      out += cat(v.report.checks[v.report.check_of[&f - v.report.findings.data()]].name, " ", f.tensor, ": ",
                 f.message, "\n");
    return out;
  }
  static const Check& against(const Verified& v) {
    for (const Check& c : v.report.checks)
      if (c.name == "against") return c;
    throw Error(Code::kInternal, "nothing was compared");
  }

  TempFolder folder_;
  std::string tested_, source_;
  Observer observer_;
};

TEST_F(Compare, EqualFilesAreEqual) {
  Verified v = compared(model({1, 2, 3, 4}), model({1, 2, 3, 4}));
  EXPECT_EQ(v.equal, true);
  EXPECT_TRUE(v.report.sound());
  EXPECT_EQ(findings(v), "");
  EXPECT_EQ(against(v).status, Check::Status::kPass);
  EXPECT_EQ(against(v).count, 2);
  EXPECT_EQ(v.report.differences.size(), 0u);
}

TEST_F(Compare, OneItemThatDiffersIsNamedWithBothValues) {
  Verified v = compared(model({1, 2, 7.5, 4}), model({1, 2, 3, 4}));
  EXPECT_EQ(v.equal, false);
  EXPECT_FALSE(v.report.sound());
  EXPECT_EQ(against(v).status, Check::Status::kFail);
  ASSERT_EQ(v.report.differences.size(), 1u);
  const Difference& d = v.report.differences[0];
  EXPECT_EQ(d.tensor, "a");
  EXPECT_EQ(d.at, "[2]");
  EXPECT_EQ(d.expected, "3");
  EXPECT_EQ(d.found, "7.5");
  EXPECT_EQ(d.items, 1);
  EXPECT_EQ(d.largest(), 4.5);
}

TEST_F(Compare, TensorsThatOneSideAloneHasAreNamed) {
  Verified v = compared(model({1, 2, 3, 4}), model({1, 2, 3, 4}, "I16", "1234", "c"));
  EXPECT_EQ(v.equal, false);
  EXPECT_EQ(findings(v), cat("against a: only ", tested_, " has this tensor\nagainst c: only ", source_,
                             " has this tensor\n"));
  EXPECT_EQ(against(v).count, 1);
  EXPECT_EQ(against(v).unseen, 1);
}

TEST_F(Compare, AnotherTypeOrShapeIsADifferenceWhateverTheBytes) {
  Verified typed = compared(model({1, 2, 3, 4}, "I16"), model({1, 2, 3, 4}, "U16"));
  EXPECT_EQ(typed.equal, false);
  EXPECT_EQ(findings(typed), cat("against b: the tensor is int16 [2], in ", source_, " uint16 [2]\n"));
  Verified shaped = compared(model({1, 2, 3}), model({1, 2, 3, 4}));
  EXPECT_EQ(shaped.equal, false);
  EXPECT_EQ(findings(shaped), cat("against a: the tensor is float32 [3], in ", source_, " float32 [4]\n"));
}

TEST_F(Compare, ObjectsBesideTheTensorsAreCompared) {
  auto file = [](i64 iteration) {
    std::string pickle =
        whole_pickle(pickled_dict({{"w", pickled_tensor()}, {"iteration", pickled(iteration)}}));
    std::vector<u8> zip =
        torch_zip({{"data.pkl", pickle}, {"byteorder", "little"}, {"data/0", six_floats()}});
    return std::string(zip.begin(), zip.end());
  };
  std::string tested = folder_.put("tested.pt", file(5));
  auto against_file = [&](i64 iteration) {
    return verify(tested, {.against = folder_.put("source.pt", file(iteration))}, observer_);
  };
  EXPECT_EQ(against_file(5).equal, true);
  Verified other = against_file(6);
  EXPECT_EQ(other.equal, false);
  ASSERT_EQ(other.report.differences.size(), 1u);
  EXPECT_EQ(other.report.differences[0].tensor, "iteration");
  EXPECT_EQ(other.report.differences[0].expected, "6");
  EXPECT_EQ(other.report.differences[0].found, "5");
  EXPECT_EQ(against(other).status, Check::Status::kPass);
}

TEST_F(Compare, TheObserverHearsOfEveryByteAndEndsTheWork) {
  struct Watching : Observer {
    void begin(const std::string& phase, i64 bytes) override { phases += cat(phase, " ", bytes, "; "); }
    void done(i64 bytes) override { seen += bytes; }
    bool stop() override { return stopped; }
    std::string phases;
    std::atomic<i64> seen = 0;
    bool stopped = false;
  } watching;
  std::string path = folder_.put("a.safetensors", model({1, 2, 3, 4}));
  VerifyOptions options{.against = folder_.put("b.safetensors", model({1, 2, 3, 4}))};
  EXPECT_EQ(verify(path, options, watching).equal, true);
  EXPECT_EQ(watching.phases, "compare 20; ");
  EXPECT_EQ(watching.seen, 20);
  watching.stopped = true;
  EXPECT_EQ(code_of([&] { verify(path, options, watching); }), Code::kInterrupted);
  EXPECT_EQ(code_of([&] { verify(path, {}, watching); }), Code::kInterrupted);
}

TEST_F(Compare, AFileThatCannotBeOpenedIsAnAnswer) {
  Verified v = compared("12345678{", model({1, 2, 3, 4}));
  EXPECT_EQ(v.equal, false);
  EXPECT_FALSE(v.report.sound());
  Verified alone = verify(folder_.at("tested.safetensors"), {}, observer_);
  EXPECT_EQ(alone.equal, std::nullopt);
  EXPECT_FALSE(alone.report.sound());
  EXPECT_EQ(code_of([&] { verify(folder_.at("none"), {}, observer_); }), Code::kNotFound);
}

}  // namespace
}  // namespace mckpt::impl
