#include "io/store/names/dcp_names.h"

#include <gtest/gtest.h>

namespace mckpt::impl {
namespace dcp_names_test {

TEST(DcpNames, AreThoseOfASave) {
  for (const char* name :
       {".metadata", "__0.metadata", "__12.metadata", "__0_0.distcp", "__3_12.distcp", "of_a_program.distcp"})
    EXPECT_TRUE(is_dcp_name(name)) << name;
  for (const char* name : {"", "metadata", "notes.metadata", "__x.metadata", "__0.metadata.bak",
                           "__.metadata", "__0_0.metadata", "model.safetensors", "distcp"})
    EXPECT_FALSE(is_dcp_name(name)) << name;
}

TEST(DcpNames, SayTheRank) {
  EXPECT_EQ(rank_of_dcp_data("__12_0.distcp"), 12);
  EXPECT_EQ(rank_of_dcp_data("model/dist_ckpt/__3_1.distcp"), 3);
  EXPECT_EQ(rank_of_dcp_metadata("__7.metadata"), 7);
  for (const char* name :
       {"", "__", "__x_0.distcp", "_1_0.distcp", "__-1_0.distcp", "__99999999999_0.distcp", "__1"})
    EXPECT_EQ(rank_of_dcp_data(name), -1) << name;
  for (const char* name : {"", ".metadata", "__1.metadatas", "__-1.metadata", "__1_0.distcp"})
    EXPECT_EQ(rank_of_dcp_metadata(name), -1) << name;
}

}  // namespace dcp_names_test
}  // namespace mckpt::impl
