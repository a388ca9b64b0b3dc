from oxigrad import _core
