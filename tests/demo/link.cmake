# SPDX-License-Identifier: Apache-2.0
target_link_libraries(test_demo PRIVATE demo_model)
