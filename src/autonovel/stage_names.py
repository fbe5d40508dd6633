"""Names of stages that more than one room of the house asks for; they are also the names of their folders."""

SIMILARITY = "3-similarity"  # what KCL and MCL have in common
JOINT = "3-joint"  # ranking statistics; incremental learning too, where it is one with joint training
JOINT_FIRST = "3-joint-first"  # joint training without incremental learning, which comes after it
AFTER_JOINT = "4-grown"  # incremental learning that does
