// Torch files put together by hand: what is refused, tensor by tensor and file by file, and what is taken.
#include <gtest/gtest.h>

#include "core/base/text.h"
#include "io/file/file.h"
#include "io/torch/file.h"
#include "tests/support/throws.h"
#include "tests/support/torch_builder.h"

namespace mckpt::impl {
namespace {

// The first problem (or else oddity) that reading the file finds, or what it throws; with the names of the
// tensors that are left.
std::string problem(const std::vector<u8>& bytes) {
  std::string out;
  std::string thrown = thrown_by([&] {
    MemorySource source(bytes);
    TorchFile file = read_torch_file(source);
    for (bool warning : {false, true})
      for (const std::vector<Finding>* list : {&file.table.findings(), &std::as_const(file.findings)})
        for (const Finding& f : *list)
          if (out.empty() && f.warning == warning)
            out = cat(warning ? "warning " : "", code_name(f.code), " ", f.tensor, ": ", f.message);
    if (out.empty()) out = "nothing";
    for (i64 row = 0; row < file.table.size(); row++) out += cat(" [", file.table.name(row), "]");
  });
  return thrown == "nothing" ? out : thrown;
}

struct BadTensor {
  const char* name;
  TensorParts tensor;
  const char* expected;
};

TEST(TorchTensor, IsRefusedUnlessItsViewStaysInTheStorage) {
  constexpr i64 kHuge = i64{1} << 62;
  const BadTensor kCases[] = {
      {"good", {}, "nothing [w]"},
      {"empty", {.numel = 6, .offset = 6, .size = {0, 3}}, "nothing [w]"},
      {"offset", {.offset = 1}, "MC1223 w: a tensor reaches out of the bounds of its storage"},
      {"negative offset", {.offset = -1}, "MC1223 w: the storage offset of a tensor is negative: found -1"},
      {"negative stride",
       {.size = {6}, .stride = {-1}},
       "MC1223 w: a stride of a tensor is negative: found -1"},
      {"negative size", {.size = {-2, 3}}, "MC0102 w: a dimension of [-2, 3] is negative"},
      {"ranks",
       {.size = {2, 3}, .stride = {1}},
       "MC1223 w: the size and the stride of a tensor have different lengths"},
      {"wrapping",
       {.size = {kHuge, 4}, .stride = {0, 1}},
       "MC0101 w: the number of items of a shape does not fit"},
      {"wrapping extent",
       {.size = {5}, .stride = {kHuge}},
       "MC0101 w: a tensor's stride does not fit 63 bits"},
      {"expansion", {.size = {i64{1} << 40}, .stride = {0}}, "MC1223 w: a tensor repeats a small storage"},
      {"small expansion", {.size = {4, 6}, .stride = {0, 1}}, "nothing [w]"},
      {"dimensions",
       {.size = std::vector<i64>(65, 1), .stride = std::vector<i64>(65, 1)},
       "MC0102 w: the size of a tensor has too many dimensions"},
      {"negative storage", {.numel = -6}, "MC1222 w: the size of a storage is negative: found -6"},
      {"large storage",
       {.numel = 1000},
       "MC1222 w: the storage data/0 has another size than the pickle says"},
      {"overflowing storage", {.numel = INT64_MAX}, "MC0101 w: the size of a tensor in bytes does not fit"},
      {"no storage", {.key = "7"}, "MC1222 w: the storage data/7 is missing"},
      {"key with a path", {.key = "../data.pkl"}, "MC1222 w: the storage data/../data.pkl is missing"},
      {"class",
       {.storage_class = "OddStorage"},
       "MC1222 w: a storage is of a class that mckpt does not know"},
  };
  for (const BadTensor& c : kCases) {
    std::string found = problem(zip_with(c.tensor));
    EXPECT_EQ(found.substr(0, std::string_view(c.expected).size()), c.expected) << c.name << ": " << found;
  }
}

// An archive whose pickle is the dict, with the six floats in storage 0.
std::string problem_of(const std::vector<std::pair<std::string, std::string>>& entries) {
  return problem(torch_zip({{"data.pkl", whole_pickle(pickled_dict(entries))}, {"data/0", six_floats()}}));
}

TEST(TorchTensor, LeavesTheOthersWhenItIsBad) {
  EXPECT_EQ(problem_of({{"bad", pickled_tensor({.offset = -1})}, {"good", pickled_tensor()}}),
            "MC1223 bad: the storage offset of a tensor is negative: found -1 [good]");
}

TEST(TorchTensor, IsRefusedWhenItsStorageHasTwoSizes) {
  EXPECT_NE(problem_of({{"a", pickled_tensor()}, {"b", pickled_tensor({.numel = 600})}})
                .find("MC1222 b: the pickle gives the storage '0' two sizes"),
            std::string::npos);
}

// torch gives a storage the type that it is named with first, and makes both tensors of this one.
TEST(TorchTensor, IsRefusedWhenItsStorageHasTwoTypes) {
  const TensorParts bytes{.storage_class = "ByteStorage", .numel = 24, .size = {24}, .stride = {1}};
  EXPECT_NE(problem_of({{"a", pickled_tensor(bytes)}, {"b", pickled_tensor()}})
                .find("MC1222 b: the pickle gives the storage '0' two data types"),
            std::string::npos);
  EXPECT_NE(problem_of({{"a", pickled_tensor()}, {"b", pickled_tensor(bytes)}})
                .find("MC1222 b: the pickle gives the storage '0' two data types"),
            std::string::npos);
}

TEST(TorchTensor, IsRefusedWhenItIsNotOneBlock) {
  for (const char* rebuild :
       {"_rebuild_sparse_tensor", "_rebuild_sparse_csr_tensor"}) {  // torch 1.13 has the second
    std::string sparse = pickled_class("torch._utils", rebuild) + "(" + pickled(1) + pickled_tensor() + "tR";
    EXPECT_EQ(problem_of({{"s", sparse}}),
              "MC1224 s: this is a sparse or nested tensor, or one of a device without storage: unsupported "
              "[s.(args).1]");
  }
  std::string meta = pickled_class("torch._utils", "_rebuild_meta_tensor_no_storage") + ")R";
  EXPECT_EQ(problem_of({{"m", meta}}),
            "MC1224 m: this is a tensor on the meta device, which has no data: unsupported");
}

TEST(TorchTensor, IsRefusedWhenItsValuesAreNotThoseStored) {
  auto with_key = [](const char* key, const char* value = "\x88") {
    return "}" + pickled(key) + value + "s";
  };
  auto found = [](const std::string& metadata) {
    return problem_of({{"w", pickled_tensor({.metadata = metadata})}});
  };
  std::string conjugate =
      "MC1224 w: the file stores not the values of the tensor but their conjugate: unsupported";
  EXPECT_EQ(found("N"), "nothing [w]");
  EXPECT_EQ(found("}"), "nothing [w]");
  EXPECT_EQ(found(with_key("conj")), conjugate);
  EXPECT_EQ(found(with_key("conj", "\x89")), conjugate);  // torch does not look at the value either
  EXPECT_EQ(found(with_key("neg")),
            "MC1224 w: the file stores not the values of the tensor but their negative: unsupported");
  EXPECT_EQ(found(with_key("backend")),
            "MC1224 w: a tensor has metadata that mckpt does not know: unsupported: found 'backend'");
  EXPECT_EQ(found(pickled(1)), "MC1210 w: the metadata of a tensor is not a dict: found an integer");

  // In _rebuild_tensor_v3 it is behind the dtype.
  auto typed = [](const std::string& metadata) {
    return pickled_class("torch._utils", "_rebuild_tensor_v3") + "(" +
           pickled_storage({.storage_class = "UntypedStorage", .numel = 24}) + pickled(0) +
           pickled(std::vector<i64>{2, 3}) + pickled(std::vector<i64>{3, 1}) + "\x89" +
           pickled_class("collections", "OrderedDict") + ")R" + pickled_class("torch", "float32") + metadata +
           "tR";
  };
  EXPECT_EQ(problem_of({{"w", typed("")}}), "nothing [w]");
  EXPECT_EQ(problem_of({{"w", typed(with_key("conj"))}}), conjugate);
}

// Two or four items of these types are in a byte, so a right file looks as if views reached out of storages.
TEST(TorchTensor, IsUnsupportedWhereItemsArePartsOfBytes) {
  for (const auto& [storage, says] : {std::pair("QUInt4x2Storage", "quint4x2, which has two"),
                                      std::pair("QUInt2x4Storage", "quint2x4, which has four")})
    EXPECT_EQ(
        problem_of({{"w", pickled_tensor(
                              {.storage_class = storage, .numel = 24, .size = {7, 6}, .stride = {6, 1}})}}),
        cat("MC1224 w: this is a tensor of ", says, " items in a byte: unsupported"));
}

TEST(TorchTensor, IsRefusedWhenATensorInPlaceOfItsHooksCannotBeMade) {
  auto with_hooks = [](const std::string& hooks) {
    return pickled_class("torch._utils", "_rebuild_tensor_v2") + "(" + pickled_storage({}) + pickled(0) +
           pickled(std::vector<i64>{2, 3}) + pickled(std::vector<i64>{3, 1}) + "\x89" + hooks + "tR";
  };
  EXPECT_EQ(problem_of({{"w", with_hooks("N")}}), "nothing [w]");
  EXPECT_EQ(problem_of({{"w", with_hooks(pickled_tensor())}}), "nothing [w]");
  EXPECT_EQ(problem_of({{"w", with_hooks(pickled_class("torch._utils", "_rebuild_tensor_v2") + ")R")}}),
            "MC1210 w: the call that makes a tensor has a wrong number of arguments: torch refuses it: "
            "expected 6 or 7, found 0");
  EXPECT_EQ(problem_of({{"w", with_hooks(pickled_tensor({.offset = -1}))}}),
            "MC1223 w: the storage offset of a tensor is negative: found -1");
}

TEST(TorchTensor, IsFoundInsideOfObjects) {
  std::string object =
      pickled_class("my.model", "Config") + ")\x81}" + pickled("weight") + pickled_tensor() + "sb";
  EXPECT_EQ(problem_of({{"c", object}}),
            "warning MC1214 : mckpt does not know these classes and shows their objects as records: "
            "my.model.Config [c.weight]");
}

TEST(TorchTensor, HasANameOfItsOwn) {
  std::string t = pickled_tensor();
  EXPECT_EQ(problem_of({{"a", pickled_dict({{"b", t}})}, {"a.b", t}}), "nothing [a.b] [a\\.b]");
  EXPECT_EQ(problem(torch_zip({{"data.pkl", whole_pickle("}(" + pickled(7) + t + pickled("7") + t + "u")},
                               {"data/0", six_floats()}})),
            "nothing [7] [7#2]");
  EXPECT_EQ(problem_of({{"a", t}, {"a", t}}),
            "MC1210 : in one dict the key 'a' is a duplicate: it occurs twice [a] [a#2]");
}

TEST(TorchTensor, IsNamedByTheWayToIt) {
  std::string t = pickled_tensor();
  auto names = [&](const std::string& value) {
    return problem(torch_zip({{"data.pkl", whole_pickle(value)}, {"data/0", six_floats()}}));
  };
  EXPECT_EQ(names(t), "nothing [tensor]");
  EXPECT_EQ(names("]" + t + "a"), "nothing [0]");
  EXPECT_EQ(names("}" + pickled(3) + "](" + t + "K\1" + t + "es"), "nothing [3.0] [3.2]");
  EXPECT_EQ(problem(torch_zip({{"data.pkl", whole_pickle("}" + pickled("a") + "Ns")}})), "nothing");
}

TEST(TorchTensor, IsNotMultipliedBySharedContainers) {
  std::string bomb = pickled_dict({{"w", pickled_tensor()}});
  for (int i = 0; i < 40; i++) bomb = bomb + "2\x86";
  EXPECT_NE(problem(torch_zip({{"data.pkl", whole_pickle(bomb)}, {"data/0", six_floats()}}))
                .find("MC1211 shared containers give 1 tensors too many names"),
            std::string::npos);
}

TEST(TorchTensor, IsFoundOnceInACycle) {
  std::string cyclic = std::string("}q\0(", 4) + pickled("self") + std::string("h\0", 2) + pickled("w") +
                       pickled_tensor() + "u";
  EXPECT_EQ(problem(torch_zip({{"data.pkl", whole_pickle(cyclic)}, {"data/0", six_floats()}})),
            "nothing [w]");
}

struct BadArchive {
  const char* name;
  Records records;
  const char* expected;
};

TEST(TorchZip, IsRefusedWhenItIsNotOfTorch) {
  std::string pickle = whole_pickle(pickled_dict({{"w", pickled_tensor()}}));
  const BadArchive kCases[] = {
      {"nothing but the pickle", {{"data.pkl", whole_pickle("}")}}, "nothing"},
      {"no records", {}, "MC1220 the zip archive is empty"},
      {"no pickle", {{"version", "3"}}, "MC1220 data.pkl is missing"},
      {"TorchScript", {{"data.pkl", "x"}, {"constants.pkl", "x"}}, "MC1221 this is a TorchScript archive"},
      {"byte order",
       {{"data.pkl", whole_pickle("}")}, {"byteorder", "middle"}},
       "MC1220 the record byteorder"},
      {"byte order in capitals",
       {{"data.pkl", whole_pickle("}")}, {"byteOrder", "big"}},
       "MC1220 : the name of the record byteorder has letters of another case, which torch passes over: "
       "expected archive/byteorder, found archive/byteOrder"},
      {"short storage",
       {{"data.pkl", pickle}, {"data/0", "abc"}},
       "MC1222 w: the storage data/0 has another size"},
      {"storage of another size that no tensor has",
       {{"data.pkl", whole_pickle(pickled_storage({.numel = 600}))}, {"data/0", six_floats()}},
       "MC1222 : the storage data/0 has another size than the pickle says (mismatch): expected 2400 bytes"},
      {"storage of no class that no tensor has",
       {{"data.pkl", whole_pickle(pickled_storage({.storage_class = "Odd"}))}, {"data/0", six_floats()}},
       "MC1222 : a storage is of a class that mckpt does not know"},
      {"unused storage",
       {{"data.pkl", pickle}, {"data/0", six_floats()}, {"data/1", "x"}},
       "warning MC1226 : no tensor uses these records of the archive: archive/data/1 [w]"},
      {"after STOP",
       {{"data.pkl", whole_pickle("}") + "more"}},
       "warning MC1226 : 4 trailing bytes follow the pickle"},
      {"cut pickle", {{"data.pkl", "\x80\x02}"}}, "MC1210 the pickle is truncated"},
      {"module",
       {{"data.pkl", whole_pickle("(" + pickled("module") + "tQ")}},
       "MC1212 a persistent id names a 'module'"},
  };
  for (const BadArchive& c : kCases) {
    std::string found = problem(torch_zip(c.records));
    EXPECT_EQ(found.substr(0, std::string_view(c.expected).size()), c.expected) << c.name << ": " << found;
  }
}

// torch asks for all records by their names below the folder of the first one.
TEST(TorchZip, HasAllRecordsInOneFolder) {
  auto archive = [](std::string_view pickle, std::string_view version) {
    return ZipBuilder().add(pickle, whole_pickle("}")).add(version, "3").finish();
  };
  EXPECT_EQ(problem(archive("a/data.pkl", "a/version")), "nothing");
  EXPECT_EQ(
      problem(archive("a/data.pkl", "b/version")),
      "MC1220 : a record is not in the folder of the archive: torch refuses the file: expected a/..., found b/version");
  EXPECT_EQ(
      problem(archive("a/data.pkl", "aversion")),
      "MC1220 : a record is not in the folder of the archive: torch refuses the file: expected a/..., found aversion");
  std::vector<u8> latin =
      ZipBuilder().add("a/data.pkl", whole_pickle("}")).add("a/version", "3").add("a/\xe9", "x").finish();
  EXPECT_EQ(problem(latin).substr(0, 75),
            "MC1220 : the name of a record is not UTF-8: torch refuses the file: found a");
  EXPECT_EQ(
      problem(archive("data.pkl", "version")),
      "MC1220 : a record is not in the folder of the archive: torch refuses the file: expected a folder around all records, found data.pkl");
}

TEST(TorchZip, KnowsBigEndianStorages) {
  std::vector<u8> bytes = torch_zip({{"data.pkl", whole_pickle(pickled_dict({{"w", pickled_tensor()}}))},
                                     {"byteorder", "big"},
                                     {"data/0", six_floats()}});
  MemorySource source(bytes);
  EXPECT_TRUE(read_torch_file(source).big_endian);
}

TEST(TorchZip, RefusesASecondPickleAndCompressedStorages) {
  ZipBuilder two;
  two.add("a/data.pkl", whole_pickle("}")).add("b/data.pkl", whole_pickle("}"));
  EXPECT_NE(problem(two.finish()).find("MC1220 the archive has a second data.pkl"), std::string::npos);
  ZipBuilder deflated;
  deflated.add("a/data.pkl", whole_pickle(pickled_dict({{"w", pickled_tensor()}})))
      .add("a/data/0", "xxxx", [](ZipHeader& local, ZipHeader& central) {
        local.method = central.method = 8;
        local.bytes = central.bytes = 24;
      });
  EXPECT_NE(problem(deflated.finish()).find("MC1202 w: the storage data/0 is compressed"), std::string::npos);
}

// The pickles of the legacy form, each of which may be replaced.
struct Legacy {
  std::string magic = whole_pickle(std::string("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 12));
  std::string protocol = whole_pickle(pickled(1001));
  std::string system = whole_pickle(pickled_dict({{"little_endian", "\x88"}}));
  std::string objects = whole_pickle(pickled_dict({{"w", pickled_tensor({.view = "N"})}}));
  std::string keys = whole_pickle("]" + pickled("0") + "a");
  std::string storages = little_endian(6, 8) + six_floats();

  std::vector<u8> bytes() const {
    std::string all = magic + protocol + system + objects + keys + storages;
    return {all.begin(), all.end()};
  }
};

struct BadLegacy {
  const char* name;
  std::function<void(Legacy&)> change;
  const char* expected;
};

TEST(TorchLegacy, IsRefusedWhenItsPartsDoNotFit) {
  const BadLegacy kCases[] = {
      {"good", [](Legacy&) {}, "nothing [w]"},
      {"protocol", [](Legacy& f) { f.protocol = whole_pickle(pickled(9999)); },
       "MC1221 the legacy torch file is of an unknown protocol version"},
      {"payload in the system's pickle",
       [](Legacy& f) { f.system = whole_pickle(pickled_class("os", "system") + "(" + pickled("x") + "tR"); },
       "MC1213 the pickle names the global os.system"},
      {"payload in the keys",
       [](Legacy& f) { f.keys = whole_pickle(pickled_class("os", "system") + "(" + pickled("x") + "tR"); },
       "MC1213 the pickle names the global os.system"},
      {"payload in the objects",
       [](Legacy& f) {
         f.objects = whole_pickle(pickled_class("os", "system") + "(" + pickled("x") + "tR");
         f.keys = whole_pickle("]");
         f.storages = "";
       },
       "MC1213 : the pickle names the global os.system"},
      {"no keys", [](Legacy& f) { f.keys = whole_pickle("]"); },
       "MC1222 w: the storage '0' is missing from the file's list of keys"},
      {"keys of another kind", [](Legacy& f) { f.keys = whole_pickle("}"); },
       "MC1220 the legacy torch file is damaged: the keys of its storages are not a list"},
      {"unknown key",
       [](Legacy& f) {
         f.keys = whole_pickle("](" + pickled("0") + pickled("1") + "e");
         f.storages += little_endian(0, 8);
       },
       "MC1220 the legacy torch file is damaged: it lists a storage '1' that no tensor names"},
      {"key twice",
       [](Legacy& f) {
         f.keys = whole_pickle("](" + pickled("0") + pickled("0") + "e");
         f.storages += f.storages;
       },
       "MC1220 the legacy torch file is damaged: it lists a storage twice"},
      {"count", [](Legacy& f) { f.storages[0] = 5; },
       "MC1222 the storage '0' has another size than the pickle says"},
      {"negative count", [](Legacy& f) { f.storages[7] = '\x80'; },
       "MC1222 the storage '0' has another size"},
      // One of them no tensor uses: only the list of storages shows it.
      {"two sizes",
       [](Legacy& f) {
         f.objects =
             whole_pickle(pickled_dict({{"w", pickled_tensor({.numel = 600})}, {"x", pickled_storage({})}}));
       },
       "MC1222 the pickle gives the storage '0' two sizes (mismatch)"},
      // torch takes the name apart into as many parts.
      {"five parts",
       [](Legacy& f) {
         f.objects = whole_pickle(pickled_dict({{"w", pickled_tensor()}}));
       },
       "MC1222 : the name of a storage has a wrong number of parts: torch refuses it: expected 6, found 5 [w]"},
      {"cut data", [](Legacy& f) { f.storages.pop_back(); },
       "MC1220 the legacy torch file is damaged: the storage '0' of 24 bytes is truncated"},
      {"cut count", [](Legacy& f) { f.storages.resize(7); },
       "MC1220 the legacy torch file is damaged: the storage '0' is missing"},
      {"trailing", [](Legacy& f) { f.storages += "more"; },
       "warning MC1226 : 4 trailing bytes follow the last storage [w]"},
      {"view",
       [](Legacy& f) {
         std::string id = pickled_storage({});
         id.insert(id.size() - 2, "(" + pickled("v") + pickled(2) + pickled(5) + "t");
         f.objects = whole_pickle(
             pickled_dict({{"w", pickled_class("torch._utils", "_rebuild_tensor") + "(" + id + pickled(0) +
                                     pickled(std::vector<i64>{3}) + pickled(std::vector<i64>{1}) + "tR"}}));
       },
       "MC1222 a storage view is out of the bounds of its storage"},
  };
  for (const BadLegacy& c : kCases) {
    Legacy file;
    c.change(file);
    std::string found = problem(file.bytes());
    EXPECT_EQ(found.substr(0, std::string_view(c.expected).size()), c.expected) << c.name << ": " << found;
  }
}

// torch swaps counts and elements while it writes on a big-endian machine, and reads the note nowhere.
TEST(TorchLegacy, IsLittleEndianWhateverItsNoteSays) {
  Legacy file;
  file.system = whole_pickle(pickled_dict({{"little_endian", "\x89"}}));
  std::vector<u8> bytes = file.bytes();
  EXPECT_EQ(problem(bytes), "nothing [w]");
  MemorySource source(bytes);
  EXPECT_FALSE(read_torch_file(source).big_endian);
}

TEST(TorchLegacy, TakesViewsOfStorages) {
  Legacy file;
  std::string id = pickled_storage({});
  id.insert(id.size() - 2, "(" + pickled("v") + pickled(2) + pickled(4) + "t");
  file.objects = whole_pickle(
      pickled_dict({{"w", pickled_class("torch._utils", "_rebuild_tensor") + "(" + id + pickled(1) +
                              pickled(std::vector<i64>{3}) + pickled(std::vector<i64>{1}) + "tR"}}));
  std::vector<u8> bytes = file.bytes();
  MemorySource source(bytes);
  TorchFile torch = read_torch_file(source);
  ASSERT_EQ(torch.table.size(), 1);
  EXPECT_EQ(torch.table.offset(0), static_cast<i64>(bytes.size()) - 24 + (2 + 1) * 4);
}

TEST(TorchLegacy, SeesEveryTruncation) {
  std::vector<u8> whole = Legacy().bytes();
  for (std::size_t n = 0; n < whole.size(); n++)
    EXPECT_EQ(problem({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n)}).substr(0, 2), "MC")
        << n;
}

TEST(TorchFileKind, IsNamedWhenItIsNotSupported) {
  auto text = [](std::string_view s) { return std::vector<u8>(s.begin(), s.end()); };
  EXPECT_EQ(problem(text("")).substr(0, 6), "MC1220");
  EXPECT_NE(problem(text("<!DOCTYPE html><html>")).find("an HTML page"), std::string::npos);
  EXPECT_NE(problem(text(whole_pickle("}"))).find("MC1221 this is a bare pickle"), std::string::npos);
  EXPECT_NE(problem(text(whole_pickle(pickled_class("os", "system") + ")R"))).find("MC1213"),
            std::string::npos);
  std::vector<u8> tar(512);
  std::copy_n("ustar", 5, tar.begin() + 257);
  EXPECT_NE(problem(tar).find("MC1221 this is a tar archive"), std::string::npos);
}

}  // namespace
}  // namespace mckpt::impl
