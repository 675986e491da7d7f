#include "runtime/modules/module.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "core/base/error.h"

namespace mckpt::impl {
namespace {

// tests/unit/runtime/fake_module.cc as it was built with this fault.
std::string fake(const std::string& fault) { return cat(MCKPT_FAKE_MODULES "/", fault, "/libmckpt_fake.so"); }

template <typename Fn>
Error error_from(Fn&& fn) {
  try {
    fn();
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "no error";
  return Error(Code::kInternal, "no error");
}

TEST(Module, LoadsAndDescribesItself) {
  Module module = load_module_file(fake("GOOD"), "fake");
  EXPECT_EQ(module.path, fake("GOOD"));
  std::vector<std::pair<std::string, std::string>> expected = {{"version", "1.2.3"}, {"threads", "4"}};
  EXPECT_EQ(describe_module(module), expected);
}

TEST(Module, RefusesWhatDoesNotFit) {
  struct Case {
    std::string fault, message;
  };
  const Case cases[] = {
      {"OLDER_ABI", "has another version of the module interface"},
      {"SMALL_TABLE", "the table of the fake module is too small"},
      {"OTHER_NAME", "this is another module"},
      {"NO_TABLE", "has no table of functions"},
      {"NO_ENTRY", "this library is not a module of mckpt"},
  };
  for (const Case& c : cases) {
    Error e = error_from([&] { load_module_file(fake(c.fault), "fake"); });
    EXPECT_EQ(e.code(), Code::kModuleMismatch) << c.fault;
    EXPECT_NE(e.message().find(c.message), std::string::npos) << c.fault << ": " << e.message();
    EXPECT_EQ(e.file(), fake(c.fault));
    EXPECT_FALSE(e.help().empty());
  }
}

TEST(Module, TellsBothVersionsOfTheInterface) {
  Error e = error_from([] { load_module_file(fake("OLDER_ABI"), "fake"); });
  EXPECT_EQ(e.expected(), cat(kMckptModuleAbi));
  EXPECT_EQ(e.found(), "999");
}

TEST(Module, PassesOnWhyItDoesNotWork) {
  Module module = load_module_file(fake("FAILS"), "fake");
  Error e = error_from([&] { describe_module(module); });
  EXPECT_EQ(e.code(), Code::kModuleMissing);
  EXPECT_EQ(e.notes(), std::vector<std::string>{"the library is in a bad mood"});
}

class ModuleFolder : public testing::Test {
 protected:
  ModuleFolder() : folder_(testing::TempDir() + "mckpt_module_XXXXXX") {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
  }
  ~ModuleFolder() override {
    unlink(file("libmckpt_torch.so").c_str());
    rmdir(folder_.c_str());
  }
  std::vector<std::string> folders() const { return {"/nowhere", folder_}; }
  std::string file(const std::string& name) { return cat(folder_, "/", name); }

  std::string folder_;
};

TEST_F(ModuleFolder, MissingModuleSaysWhereItWasLookedForAndHowToGetIt) {
  Error e = error_from([&] { load_module("torch", folders()); });
  EXPECT_EQ(e.code(), Code::kModuleMissing);
  EXPECT_NE(e.expected().find(cat("libmckpt_torch.so in one of: /nowhere/, ", folder_)), std::string::npos)
      << e.expected();
  EXPECT_NE(e.help().find("MCKPT_TORCH=ON"), std::string::npos) << e.help();
}

TEST_F(ModuleFolder, BrokenLibraryIsReportedInTheLoadersWords) {
  std::ofstream(file("libmckpt_torch.so")) << "not a library";
  EXPECT_EQ(find_module("torch", folders()), file("libmckpt_torch.so"));
  Error e = error_from([&] { load_module("torch", folders()); });
  EXPECT_EQ(e.code(), Code::kModuleMissing);
  EXPECT_EQ(e.file(), file("libmckpt_torch.so"));
  ASSERT_EQ(e.notes().size(), 1u);
  EXPECT_NE(e.notes()[0].find("file too short"), std::string::npos) << e.notes()[0];
}

TEST(ModuleKinds, EveryKindSaysHowToGetIt) {
  for (const ModuleKind& kind : module_kinds()) {
    EXPECT_NE(kind.get.find("MCKPT_"), std::string_view::npos) << kind.name;
    EXPECT_FALSE(kind.purpose.empty());
  }
}

}  // namespace
}  // namespace mckpt::impl
