// Facts of the configs in a folder.
#include "io/safetensors/config_facts.h"

#include <gtest/gtest.h>

#include "io/file/folder.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl {
namespace config_facts_test {

// The file counts that is looked for first, and by which the adapter is merged.
TEST(AdapterText, IsOfTheFirstConfig) {
  TempFolder folder;
  EXPECT_EQ(adapter_text(Folder(folder.path())), "");
  folder.put("lora_train_meta.json", R"({"r": 2, "lora_alpha": 4})");
  EXPECT_EQ(adapter_text(Folder(folder.path())), "LORA, rank 2");
  folder.put("lora_adapter/adapter_config.json", R"({"peft_type": "LORA", "r": 4})");
  EXPECT_EQ(adapter_text(Folder(folder.path())), "LORA, rank 4");
  folder.put("adapter_config.json", R"({"r": 8, "base_model_name_or_path": "org/base"})");
  EXPECT_EQ(adapter_text(Folder(folder.path())), "of an unnamed kind, rank 8, of org/base");
}

}  // namespace config_facts_test
}  // namespace mckpt::impl
