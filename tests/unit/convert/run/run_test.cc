// Conversions made by hand, of a safetensors folder with four tensors into another one, through prove(),
// check_result() and run(): what is written, what is left where a run is stopped, and what a check writes.
#include "convert/run/run.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "convert/jobs/proof.h"
#include "convert/open/open.h"
#include "convert/plan/target.h"
#include "core/base/error.h"
#include "core/base/observer.h"
#include "io/copy/job.h"
#include "io/copy/read_sums.h"
#include "io/copy/tensor_copy.h"
#include "io/file/folder.h"
#include "io/listing/manifest.h"
#include "io/output/output_files.h"
#include "io/output/staged_folder.h"
#include "io/safetensors/layout.h"
#include "io/store/store.h"
#include "io/store/tensor_spec.h"
#include "runtime/comm/comm.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl {
namespace run_test {

namespace fs = std::filesystem;

constexpr i64 kItems = 3 << 19;  // of a tensor: 6 MiB, more than a batch of the engine

// A folder with the tensors "a" to "d", whose items are numbers that differ.
void write_source(const std::string& folder) {
  std::vector<std::string> names = {"a", "b", "c", "d"};
  std::vector<i64> dims = {kItems};
  std::vector<TensorSpec> specs;
  for (const std::string& name : names) specs.push_back({name, DType::kF32, dims});
  SafetensorsLayout layout(specs);
  fs::create_directory(folder);
  OutputFiles out(folder, layout.output_files());
  auto bytes = [](const auto& data) {
    return std::span(reinterpret_cast<const u8*>(data.data()), data.size() * sizeof data[0]);
  };
  out.write(0, 0, bytes(layout.files()[0].header));
  for (i64 t = 0; t < 4; t++) {
    std::vector<float> items(kItems);
    for (i64 i = 0; i < kItems; i++) items[i] = static_cast<float>(t * kItems + i);
    out.write(0, layout.offset(t), bytes(items));
  }
  out.sync();
}

// The first `tensors` of a store in a safetensors file of a folder.
class Copied final : public Target {
 public:
  Copied(const Store& store, i64 tensors, const std::string& folder) : layout_(specs(store, tensors)) {
    std::vector<TensorCopy::Place> places;
    for (i64 t = 0; t < tensors; t++) places.push_back({t, 0, layout_.offset(t)});
    job = std::make_unique<TensorCopy>(store, places);
    path = folder;
    set_files(*this, layout_.output_files());
    identity = cat("test ", tensors, "\n");
    proof = {side_of(store), side_of(store)};
    beside.files.texts.emplace("config.json", "{}");
  }
  void write_frame(const FramePlace& to) const override { impl::write_frame(layout_, to); }

 private:
  static std::vector<TensorSpec> specs(const Store& store, i64 tensors) {
    std::vector<TensorSpec> out;
    for (i64 t = 0; t < tensors; t++) out.push_back({store.name(t), store.dtype(t), store.dims(t)});
    return out;
  }
  SafetensorsLayout layout_;
};

struct Case {
  TempFolder folder;
  std::string source = folder.path() + "/source", path = folder.path() + "/result";

  Case() { write_source(source); }

  // The first `tensors` of the source.
  Conversion plan(i64 tensors = 4) const {
    std::unique_ptr<Store> store = open_store(source);
    return impl::plan(open_plain(std::move(store), source, {}), [&](Opened& opened) {
      return std::make_unique<Copied>(opened.store(), tensors, path);
    });
  }

  bool has(std::string_view name) const { return fs::exists(cat(folder.path(), "/", name)); }
  i64 entries() const { return std::distance(fs::directory_iterator(folder.path()), {}); }
  // Whether the result has the source's tensors, and a manifest that names all of its files.
  void expect_whole() const {
    std::unique_ptr<Store> from = open_store(source), there = open_store(path);
    ASSERT_EQ(there->tensor_count(), 4);
    for (i64 t = 0; t < 4; t++) {
      ChunkData one = from->resolve(t, 0), other = there->resolve(t, 0);
      auto bytes = [](const Store& store, const ChunkData& at) {
        std::ifstream file(file_path(store, at.file), std::ios::binary);
        std::string data(kItems * 4, '\0');
        file.seekg(at.offset).read(data.data(), std::ssize(data));
        return data;
      };
      EXPECT_TRUE(bytes(*from, one) == bytes(*there, other)) << from->name(t);
    }
    std::optional<Manifest> manifest = read_manifest(Folder(path));
    ASSERT_TRUE(manifest);
    EXPECT_TRUE(manifest->find("config.json"));
    ASSERT_TRUE(manifest->find("model.safetensors"));
    EXPECT_EQ(manifest->find("model.safetensors")->sums.size(), 4u);
  }
};

// Asks the run to stop after `stop_after` bytes, and records the calls that it gets.
class Watcher final : public Observer {
 public:
  explicit Watcher(i64 stop_after = -1) : stop_after_(stop_after) {}
  void begin(const std::string& phase, i64) override { phases += cat(phase, " "); }
  void done(i64 bytes) override { bytes_ += bytes; }
  bool stop() override { return stop_after_ >= 0 && bytes_ >= stop_after_; }
  void staged(const std::string&) override { is_staged = true; }
  void published() override { is_published = true; }
  void note(const Note& note) override { notes += note.text + "\n"; }

  i64 bytes() const { return bytes_; }
  std::string phases, notes;
  bool is_staged = false, is_published = false;

 private:
  i64 stop_after_;
  std::atomic<i64> bytes_ = 0;
};

// The code of what fn throws; nothing where it throws nothing.
template <typename Fn>
std::optional<Code> code_of(Fn&& fn) {
  try {
    fn();
  } catch (const Error& e) {
    return e.code();
  }
  return std::nullopt;
}

RunResult run_alone(Conversion& c, Observer& observer, RunOptions options = {.durable = false}) {
  std::unique_ptr<Comm> alone = local_comm();
  return run(c, options, *alone, observer);
}

TEST(Run, WritesAFolderWithItsManifest) {
  Case at;
  Conversion c = at.plan();
  prove(c, 2);
  EXPECT_EQ(c.account.copied, 4);
  Watcher watcher;
  RunResult result = run_alone(c, watcher);
  at.expect_whole();
  EXPECT_EQ(result.counts.bytes_written, 4 * 4 * kItems);
  EXPECT_EQ(watcher.bytes(), result.counts.bytes_written);
  EXPECT_EQ(watcher.phases, "write finish ");
  EXPECT_TRUE(watcher.is_staged && watcher.is_published);
}

TEST(Run, ChecksAndProvesWithoutWriting) {
  Case at;
  Conversion c = at.plan();
  prove(c, 1);
  check_result(c, {});
  EXPECT_EQ(at.entries(), 1);
}

TEST(Run, RefusesAResultThatIsThere) {
  Case at;
  fs::create_directory(at.path);
  std::ofstream(at.path + "/thesis.tex") << "x";
  EXPECT_EQ(code_of([&] { check_result(at.plan(), {}); }), Code::kOutputExists);
  EXPECT_EQ(code_of([&] { check_result(at.plan(), {.overwrite = true}); }), Code::kOutputExists);
}

TEST(Run, RefusesToWriteIntoItsSource) {
  Case at;
  Conversion c = at.plan();
  c.path = at.source + "/result";
  EXPECT_EQ(code_of([&] { check_result(c, {}); }), Code::kOutputExists);
}

TEST(Run, StopsWhenTheObserverAsksAndResumes) {
  Case at;
  Conversion c = at.plan();
  Watcher stopping(7 << 20);  // in the second tensor
  EXPECT_EQ(code_of([&] { run_alone(c, stopping, {.durable = false}); }), Code::kInterrupted);
  EXPECT_FALSE(at.has("result"));
  EXPECT_TRUE(StagedFolder::is_begun(at.path));
  EXPECT_TRUE(stopping.is_staged && !stopping.is_published);

  Watcher watcher;
  Conversion again = at.plan();
  RunResult result = run_alone(again, watcher, {.durable = false, .resume = true});
  at.expect_whole();
  EXPECT_LT(result.counts.bytes_written, 4 * 4 * kItems);
  EXPECT_NE(watcher.notes.find("continues the unfinished output"), std::string::npos);
}

TEST(Run, ResumesTheSameConversionAlone) {
  Case at;
  Conversion c = at.plan(), other = at.plan(3);
  Watcher stopping(1), watcher;
  EXPECT_EQ(code_of([&] { run_alone(c, stopping); }), Code::kInterrupted);
  EXPECT_EQ(code_of([&] { run_alone(other, watcher, {.durable = false, .resume = true}); }),
            Code::kOtherPlan);
}

// A job whose source states sums of what is read.
class Stating final : public CopyJob {
 public:
  Stating(std::unique_ptr<CopyJob> job, u32 sum) : job_(std::move(job)), sum_(sum) {}
  i64 task_count() const override { return job_->task_count(); }
  CopyTask task(i64 index) const override {
    CopyTask task = job_->task(index);
    task.sums.push_back({0, index, 1, sum_ + static_cast<u32>(index)});
    return task;
  }
  i64 task_bytes(i64 index) const override { return job_->task_bytes(index); }
  const ByteSource& source(i32 file) const override { return job_->source(file); }
  std::string tensor_of(const Region& region) const override { return job_->tensor_of(region); }

 private:
  std::unique_ptr<CopyJob> job_;
  u32 sum_;
};

// Where size and times say nothing, the sums that the source states do.
TEST(Run, ResumesNotFromASourceThatStatesOtherSums) {
  Case at;
  auto plan = [&](u32 sum) {
    Conversion c = at.plan();
    c.job = std::make_unique<Stating>(std::move(c.job), sum);
    c.sums.reset();  // which would compare them with the files
    return c;
  };
  Conversion c = plan(5), other = plan(6), same = plan(5);
  Watcher stopping(7 << 20), watcher;
  EXPECT_EQ(code_of([&] { run_alone(c, stopping); }), Code::kInterrupted);
  EXPECT_EQ(code_of([&] { run_alone(other, watcher); }), Code::kOtherPlan);
  EXPECT_FALSE(at.has("result"));
  RunResult result = run_alone(same, watcher);
  EXPECT_LT(result.counts.bytes_written, 4 * 4 * kItems);
  at.expect_whole();
}

TEST(Run, WritesASingleFile) {
  Case at;
  Conversion c = at.plan();
  c.single_file = true;
  c.path = at.folder.path() + "/all.safetensors";
  c.beside = {};
  Watcher watcher;
  run_alone(c, watcher);
  EXPECT_EQ(open_store(c.path)->tensor_count(), 4);
  EXPECT_EQ(at.entries(), 2);
}

// A job that knows nothing of its run until it is carried out.
class Asking final : public CopyJob {
 public:
  explicit Asking(std::unique_ptr<CopyJob> job) : job_(std::move(job)) {}
  void prepare(int threads, i64 memory_bytes) const override { asked = {threads, memory_bytes}; }
  i64 task_count() const override { return job_->task_count(); }
  CopyTask task(i64 index) const override { return job_->task(index); }
  i64 task_bytes(i64 index) const override { return job_->task_bytes(index); }
  const ByteSource& source(i32 file) const override { return job_->source(file); }
  std::string tensor_of(const Region& region) const override { return job_->tensor_of(region); }
  mutable std::pair<int, i64> asked{};

 private:
  std::unique_ptr<CopyJob> job_;
};

TEST(Run, SaysThreadsAndMemoryToTheJob) {
  Case at;
  Conversion c = at.plan();
  auto job = std::make_unique<Asking>(std::move(c.job));
  const Asking& asking = *job;
  c.job = std::move(job);
  Watcher watcher;
  run_alone(c, watcher, {.threads = 3, .memory_bytes = i64{48} << 20, .durable = false});
  EXPECT_EQ(asking.asked, std::pair(3, i64{48} << 20));
  at.expect_whole();
}

TEST(Conversion, ATensorThatIsLostIsNamed) {
  Case at;
  Conversion c = at.plan(3);
  try {
    prove(c, 1);
    FAIL() << "a tensor was lost";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kUnproved);
    ASSERT_FALSE(e.notes().empty());
    EXPECT_NE(e.notes()[0].find("d, of the source"), std::string::npos) << e.notes()[0];
  }
}

}  // namespace run_test
}  // namespace mckpt::impl
